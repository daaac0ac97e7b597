-- Transfers that a payer signed and a facilitator was given: looked for on the chain until they are there, or can be
-- there no more.
CREATE TABLE authorizations (
  chain_id INTEGER NOT NULL,
  -- Who signed it, and the number that makes it one of a kind on the chain (EIP-3009).
  payer TEXT NOT NULL CHECK (length(payer) = 42 AND payer = lower(payer)),
  nonce TEXT NOT NULL CHECK (length(nonce) = 66 AND nonce = lower(nonce)),
  -- Who presented it first.
  account_id TEXT NOT NULL REFERENCES accounts,
  amount INTEGER NOT NULL CHECK (amount > 0),
  -- The chain's head before it was given away: it is in a later block.
  head INTEGER NOT NULL,
  -- The chain takes it in blocks before this time only; in milliseconds.
  valid_before INTEGER NOT NULL,
  -- `failed`: the facilitator says so. It is looked for all the same.
  status TEXT NOT NULL CHECK (status IN ('settling', 'failed', 'credited', 'lapsed')),
  -- The transaction, as far as is known.
  tx_hash TEXT CHECK (length(tx_hash) = 66 AND tx_hash = lower(tx_hash)),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (chain_id, payer, nonce)
) STRICT, WITHOUT ROWID;
CREATE INDEX open_authorizations ON authorizations (account_id) WHERE status IN ('settling', 'failed');
