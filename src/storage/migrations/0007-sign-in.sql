-- A code is tried apart by the address that asked for it and by all others, so that no stranger uses up its owner's tries.
-- One whose mail was refused still counts as sent, and opens nothing.
ALTER TABLE sign_in_codes ADD COLUMN other_tries INTEGER NOT NULL DEFAULT 0 CHECK (other_tries BETWEEN 0 AND 5);
ALTER TABLE sign_in_codes ADD COLUMN refused_at INTEGER;
CREATE INDEX sign_in_codes_by_invite ON sign_in_codes (invite_id, created_at) WHERE invite_id IS NOT NULL;
CREATE INDEX sign_in_codes_by_age ON sign_in_codes (created_at);
CREATE INDEX sign_in_links_by_end ON sign_in_links (expires_at);
CREATE INDEX api_keys_by_end ON api_keys (expires_at) WHERE expires_at IS NOT NULL;

-- Where each account has signed in from. What strangers ask for in its name is counted apart from what these ask for.
CREATE TABLE sign_in_addresses (
  account_id TEXT NOT NULL REFERENCES accounts,
  address TEXT NOT NULL,
  signed_in_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, address)
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_addresses_by_age ON sign_in_addresses (signed_in_at);

-- Tokens that were signed out before their end, until it.
CREATE TABLE signed_out_tokens (
  token_id TEXT PRIMARY KEY,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX signed_out_tokens_by_end ON signed_out_tokens (expires_at);
