-- The meter is billing's: what it has read of an instance leaves the instance's row.
CREATE TABLE meters (
  instance_id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts,
  accrued INTEGER NOT NULL CHECK (accrued >= 0),
  -- What was counted beyond `accrued`, in nanoseconds × micro-USDC an hour: always under one micro-USDC.
  remainder INTEGER NOT NULL CHECK (remainder >= 0 AND remainder < 3600000000000),
  -- The part of `accrued` that is not in the journal yet, and the hour (since 1970) it belongs to.
  unposted INTEGER NOT NULL CHECK (unposted BETWEEN 0 AND accrued),
  hour INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX meters_by_account ON meters (account_id);
INSERT INTO meters SELECT instance_id, account_id, accrued, meter_remainder, 0, 0 FROM instances;
ALTER TABLE instances DROP COLUMN accrued;
ALTER TABLE instances DROP COLUMN meter_remainder;

-- Entries are numbered in the order of their commits, which a step of the wall clock cannot change.
CREATE TABLE journal (
  entry_id INTEGER PRIMARY KEY,
  transaction_id TEXT NOT NULL UNIQUE,
  type TEXT NOT NULL CHECK (type IN ('top_up', 'credit', 'usage', 'reversal')),
  account_id TEXT NOT NULL REFERENCES accounts,
  -- Of a usage entry: what was used, in which hour since 1970.
  instance_id TEXT,
  hour INTEGER,
  -- Of a top-up, and of the reversal of one: the transfer.
  chain_id INTEGER,
  tx_hash TEXT,
  note TEXT,
  -- The customer's balance behind this entry.
  balance_after INTEGER NOT NULL CHECK (balance_after >= 0),
  created_at INTEGER NOT NULL,
  CHECK ((type = 'usage') = (hour IS NOT NULL)),
  CHECK ((chain_id IS NULL) = (tx_hash IS NULL))
) STRICT;
INSERT INTO journal (transaction_id, type, account_id, instance_id, note, balance_after, created_at)
  SELECT transaction_id, type, account_id, instance_id, note,
    sum(amount) OVER (PARTITION BY account_id ORDER BY entries.rowid), entries.created_at
  FROM journal_entries AS entries JOIN postings USING (transaction_id)
  WHERE ledger_account = 'customer:' || account_id AND type <> 'usage'
  ORDER BY entries.rowid;
CREATE TABLE sides (
  entry_id INTEGER NOT NULL REFERENCES journal,
  ledger_account TEXT NOT NULL,
  amount INTEGER NOT NULL CHECK (amount <> 0),
  PRIMARY KEY (entry_id, ledger_account)
) STRICT, WITHOUT ROWID;
INSERT INTO sides SELECT entry_id, ledger_account, amount FROM postings JOIN journal USING (transaction_id);
DROP TABLE payments;
DROP TABLE postings;
DROP TABLE journal_entries;
ALTER TABLE journal RENAME TO journal_entries;
ALTER TABLE sides RENAME TO postings;
CREATE INDEX journal_entries_by_account ON journal_entries (account_id, entry_id);
CREATE INDEX usage_by_hour ON journal_entries (account_id, instance_id, hour, entry_id) WHERE type = 'usage';
CREATE INDEX postings_by_ledger_account ON postings (ledger_account);
CREATE TRIGGER journal_is_append_only_update BEFORE UPDATE ON journal_entries BEGIN SELECT raise(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER journal_is_append_only_delete BEFORE DELETE ON journal_entries BEGIN SELECT raise(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER postings_are_append_only_update BEFORE UPDATE ON postings BEGIN SELECT raise(ABORT, 'postings are append-only'); END;
CREATE TRIGGER postings_are_append_only_delete BEFORE DELETE ON postings BEGIN SELECT raise(ABORT, 'postings are append-only'); END;

-- The cached sum of a customer's postings, and what its meters have read that is not among them yet.
CREATE TABLE books (
  account_id TEXT PRIMARY KEY REFERENCES accounts,
  balance INTEGER NOT NULL CHECK (balance >= 0),
  unposted INTEGER NOT NULL DEFAULT 0 CHECK (unposted BETWEEN 0 AND balance),
  -- Of reversed top-ups that were spent already: taken from the next top-up.
  owed INTEGER NOT NULL DEFAULT 0 CHECK (owed >= 0),
  -- The calendar month (UTC) that was metered last, and its usage.
  month TEXT NOT NULL DEFAULT '',
  spent INTEGER NOT NULL DEFAULT 0 CHECK (spent >= 0),
  -- The runway in seconds that was warned of last; null while there is more.
  runway_warned INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO books (account_id, balance, owed) SELECT account_id, balance, owed FROM balances;
DROP TABLE balances;
ALTER TABLE books RENAME TO balances;

DROP TABLE usage_days;
-- Outlives its instance: a bill stays a bill.
CREATE TABLE usage_days (
  account_id TEXT NOT NULL REFERENCES accounts,
  day TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  running_ns INTEGER NOT NULL CHECK (running_ns >= 0),
  cost INTEGER NOT NULL CHECK (cost >= 0),
  PRIMARY KEY (account_id, day, instance_id)
) STRICT, WITHOUT ROWID;

-- What an hour cost since when: a bill can be checked after the price has changed.
CREATE TABLE prices (
  since INTEGER PRIMARY KEY,
  price_per_hour INTEGER NOT NULL CHECK (price_per_hour >= 0)
) STRICT;

CREATE TABLE payments (
  payment_id INTEGER PRIMARY KEY,
  chain_id INTEGER NOT NULL,
  tx_hash TEXT NOT NULL CHECK (length(tx_hash) = 66 AND tx_hash = lower(tx_hash)),
  -- The log's place in its transaction's receipt: the place in the block changes when a block is replaced.
  log_index INTEGER NOT NULL,
  block_number INTEGER NOT NULL,
  block_hash TEXT NOT NULL,
  payer TEXT NOT NULL,
  amount INTEGER NOT NULL CHECK (amount > 0),
  -- Null for one that a facilitator settled: it paid no invoice.
  invoice_id TEXT REFERENCES invoices,
  account_id TEXT NOT NULL REFERENCES accounts,
  -- The entry that credited it last.
  transaction_id TEXT NOT NULL REFERENCES journal_entries (transaction_id),
  status TEXT NOT NULL CHECK (status IN ('credited', 'final', 'reversed')),
  -- Whether its account has had the answer that it was credited.
  told INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0, 1)),
  created_at INTEGER NOT NULL,
  UNIQUE (chain_id, tx_hash, log_index)
) STRICT;
CREATE INDEX payments_by_account ON payments (account_id, payment_id);
CREATE INDEX payments_to_recheck ON payments (chain_id, block_number) WHERE status = 'credited';

-- Transactions that somebody said were payments: looked at again until they are decided.
CREATE TABLE claims (
  chain_id INTEGER NOT NULL,
  tx_hash TEXT NOT NULL CHECK (length(tx_hash) = 66 AND tx_hash = lower(tx_hash)),
  -- Who said so. Whom it credits is for the invoice to say.
  account_id TEXT NOT NULL REFERENCES accounts,
  -- Of one that a facilitator settled: who paid, and how much. It credits the account that says so, by no invoice.
  payer TEXT,
  amount INTEGER CHECK (amount > 0),
  status TEXT NOT NULL CHECK (status IN ('pending', 'credited', 'refused', 'expired')),
  -- Why it is not credited, in the words that the presenter gets.
  reason TEXT,
  tries INTEGER NOT NULL DEFAULT 0,
  next_try_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  CHECK ((payer IS NULL) = (amount IS NULL)),
  PRIMARY KEY (chain_id, tx_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX pending_claims ON claims (next_try_at) WHERE status = 'pending';
CREATE INDEX claims_by_account ON claims (account_id, status);
