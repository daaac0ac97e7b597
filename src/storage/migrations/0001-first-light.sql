-- Times are milliseconds since 1970, money is micro-USDC, ids are text (prefix + UUIDv7).

CREATE TABLE accounts (
  account_id TEXT PRIMARY KEY,
  email TEXT NOT NULL UNIQUE CHECK (email = lower(trim(email))),
  name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
  token_epoch INTEGER NOT NULL DEFAULT 0,
  monthly_limit INTEGER CHECK (monthly_limit >= 0),
  suspended_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE invites (
  invite_id TEXT PRIMARY KEY,
  code_hash BLOB NOT NULL UNIQUE,
  uses INTEGER NOT NULL CHECK (uses > 0),
  uses_left INTEGER NOT NULL CHECK (uses_left BETWEEN 0 AND uses),
  credit INTEGER NOT NULL CHECK (credit >= 0),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT;

-- Every code that was sent, kept a day, because the limits are counted from these rows.
CREATE TABLE sign_in_codes (
  code_id INTEGER PRIMARY KEY,
  email TEXT NOT NULL,
  address TEXT NOT NULL,
  code_hmac BLOB NOT NULL,
  invite_id TEXT REFERENCES invites,
  tries INTEGER NOT NULL DEFAULT 0 CHECK (tries BETWEEN 0 AND 5),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  used_at INTEGER
) STRICT;
CREATE INDEX sign_in_codes_by_email ON sign_in_codes (email, code_id);
CREATE INDEX sign_in_codes_by_address ON sign_in_codes (address, created_at);

CREATE TABLE sign_in_links (
  token_hash BLOB PRIMARY KEY,
  email TEXT NOT NULL,
  credit INTEGER NOT NULL CHECK (credit >= 0),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  used_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
  key_id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts,
  name TEXT,
  prefix TEXT NOT NULL,
  key_hash BLOB NOT NULL UNIQUE,
  scopes TEXT NOT NULL,
  instance_id TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  last_used_at INTEGER,
  last_address TEXT
) STRICT;
CREATE INDEX api_keys_by_account ON api_keys (account_id, key_id);

-- Double entry: the postings of an entry sum to zero. Rows are never updated or deleted; a mistake is a reversal.
CREATE TABLE journal_entries (
  transaction_id TEXT PRIMARY KEY,
  type TEXT NOT NULL CHECK (type IN ('top_up', 'credit', 'usage', 'reversal')),
  account_id TEXT NOT NULL REFERENCES accounts,
  instance_id TEXT,
  note TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX journal_entries_by_account ON journal_entries (account_id, transaction_id);

CREATE TABLE postings (
  transaction_id TEXT NOT NULL REFERENCES journal_entries,
  ledger_account TEXT NOT NULL,
  amount INTEGER NOT NULL CHECK (amount <> 0),
  PRIMARY KEY (transaction_id, ledger_account)
) STRICT, WITHOUT ROWID;
CREATE INDEX postings_by_ledger_account ON postings (ledger_account);

-- The cached sum of a customer's postings, changed in the transaction that posts them.
CREATE TABLE balances (
  account_id TEXT PRIMARY KEY REFERENCES accounts,
  balance INTEGER NOT NULL CHECK (balance >= 0),
  owed INTEGER NOT NULL DEFAULT 0 CHECK (owed >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE invoices (
  invoice_id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts,
  amount INTEGER NOT NULL CHECK (amount > 0),
  status TEXT NOT NULL CHECK (status IN ('open', 'paid', 'expired')),
  -- JSON, network name → block number of its head when the invoice was opened.
  heads TEXT NOT NULL DEFAULT '{}',
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  paid_at INTEGER
) STRICT;
CREATE INDEX invoices_by_account ON invoices (account_id, status);
CREATE INDEX invoices_by_amount ON invoices (amount, created_at);
-- The amount alone names the payer, so no two open invoices may share one.
CREATE UNIQUE INDEX open_invoice_amounts ON invoices (amount) WHERE status = 'open';

CREATE TABLE payments (
  payment_id INTEGER PRIMARY KEY,
  chain_id INTEGER NOT NULL,
  tx_hash TEXT NOT NULL CHECK (length(tx_hash) = 66),
  log_index INTEGER NOT NULL,
  block_number INTEGER NOT NULL,
  block_hash TEXT NOT NULL,
  amount INTEGER NOT NULL CHECK (amount > 0),
  invoice_id TEXT NOT NULL REFERENCES invoices,
  account_id TEXT NOT NULL REFERENCES accounts,
  transaction_id TEXT NOT NULL REFERENCES journal_entries,
  status TEXT NOT NULL CHECK (status IN ('credited', 'final', 'reversed')),
  created_at INTEGER NOT NULL,
  UNIQUE (chain_id, tx_hash, log_index)
) STRICT;

CREATE TABLE instances (
  instance_id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts,
  name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
  status TEXT NOT NULL CHECK (status IN ('provisioning', 'running', 'stopping', 'stopped', 'starting', 'error')),
  status_reason TEXT,
  agent_count INTEGER NOT NULL DEFAULT 0 CHECK (agent_count >= 0),
  accrued INTEGER NOT NULL DEFAULT 0 CHECK (accrued >= 0),
  -- What the meter has counted beyond `accrued`, in nanoseconds × micro-USDC an hour: never a whole micro-USDC.
  meter_remainder INTEGER NOT NULL DEFAULT 0 CHECK (meter_remainder >= 0),
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  stopped_at INTEGER
) STRICT;
CREATE INDEX instances_by_account ON instances (account_id, instance_id);
CREATE INDEX instances_by_status ON instances (status);

-- Outlives its instance: a bill stays a bill.
CREATE TABLE usage_days (
  account_id TEXT NOT NULL REFERENCES accounts,
  day TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  running_ms INTEGER NOT NULL CHECK (running_ms >= 0),
  cost INTEGER NOT NULL CHECK (cost >= 0),
  PRIMARY KEY (account_id, day, instance_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE agents (
  agent_id TEXT PRIMARY KEY,
  instance_id TEXT NOT NULL REFERENCES instances ON DELETE CASCADE,
  name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
  slug TEXT NOT NULL CHECK (length(slug) BETWEEN 1 AND 63),
  display_name TEXT NOT NULL,
  model TEXT,
  last_event_id INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (instance_id, slug)
) STRICT;
CREATE INDEX agents_by_instance ON agents (instance_id, agent_id);

-- Changes of workspace files whose database half is committed; gone once the files have followed.
CREATE TABLE workspace_changes (
  change_id TEXT PRIMARY KEY,
  instance_id TEXT NOT NULL REFERENCES instances ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
  run_id TEXT PRIMARY KEY,
  agent_id TEXT NOT NULL REFERENCES agents ON DELETE CASCADE,
  instance_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
  error_code TEXT,
  error_message TEXT,
  steps INTEGER NOT NULL DEFAULT 0,
  prompt_tokens INTEGER NOT NULL DEFAULT 0,
  completion_tokens INTEGER NOT NULL DEFAULT 0,
  -- Where in the agent's log the run begins, so that its own stream is a range of it.
  first_event_id INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER
) STRICT;
CREATE INDEX runs_by_agent ON runs (agent_id);
CREATE INDEX unfinished_runs ON runs (agent_id, run_id) WHERE status IN ('queued', 'running');

CREATE TABLE messages (
  message_seq INTEGER PRIMARY KEY,
  message_id TEXT NOT NULL UNIQUE,
  agent_id TEXT NOT NULL REFERENCES agents ON DELETE CASCADE,
  run_id TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('user', 'agent')),
  text TEXT NOT NULL,
  sender_type TEXT NOT NULL,
  sender_id TEXT NOT NULL,
  sender_name TEXT NOT NULL,
  in_reply_to TEXT,
  finish_reason TEXT CHECK (finish_reason IN ('stop', 'length', 'cancelled', 'error')),
  prompt_tokens INTEGER,
  completion_tokens INTEGER,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_by_agent ON messages (agent_id, message_seq);

CREATE TABLE events (
  agent_id TEXT NOT NULL REFERENCES agents ON DELETE CASCADE,
  event_id INTEGER NOT NULL,
  run_id TEXT,
  type TEXT NOT NULL,
  -- JSON of the members that are the kind's own.
  data TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (agent_id, event_id)
) STRICT, WITHOUT ROWID;

-- Large columns come last here, so that a list reads none of their pages.
CREATE TABLE installed_skills (
  instance_id TEXT NOT NULL REFERENCES instances ON DELETE CASCADE,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  description TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('catalog', 'upload')),
  installed_at INTEGER NOT NULL,
  -- JSON: the secrets, hosts and tools that it names.
  requires TEXT NOT NULL,
  instructions TEXT NOT NULL,
  -- JSON, file name → text: an installed skill does not change when the catalog does.
  files TEXT NOT NULL,
  PRIMARY KEY (instance_id, name)
) STRICT;

CREATE TABLE secrets (
  instance_id TEXT NOT NULL REFERENCES instances ON DELETE CASCADE,
  key TEXT NOT NULL,
  data_key_id INTEGER NOT NULL REFERENCES data_keys,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  -- AES-256-GCM under the data key: nonce, ciphertext, tag.
  sealed BLOB NOT NULL,
  PRIMARY KEY (instance_id, key)
) STRICT;

-- Data keys, each wrapped by the master key that lives outside the database.
CREATE TABLE data_keys (
  data_key_id INTEGER PRIMARY KEY,
  wrapped BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE idempotent_requests (
  account_id TEXT NOT NULL REFERENCES accounts,
  key TEXT NOT NULL,
  request_hash BLOB NOT NULL,
  status INTEGER NOT NULL,
  body TEXT NOT NULL,
  -- Set for a message: the answer is then told from its run.
  run_id TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotent_requests_by_age ON idempotent_requests (created_at);

-- Mail that no SMTP server was configured to take.
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY,
  to_address TEXT NOT NULL,
  subject TEXT NOT NULL,
  text TEXT NOT NULL,
  code TEXT,
  created_at INTEGER NOT NULL
) STRICT;

-- Append-only; each row's hash covers the row before it.
CREATE TABLE audit (
  audit_id INTEGER PRIMARY KEY AUTOINCREMENT,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  hash BLOB NOT NULL
) STRICT;
CREATE TRIGGER audit_is_append_only_update BEFORE UPDATE ON audit BEGIN SELECT raise(ABORT, 'audit is append-only'); END;
CREATE TRIGGER audit_is_append_only_delete BEFORE DELETE ON audit BEGIN SELECT raise(ABORT, 'audit is append-only'); END;
CREATE TRIGGER journal_is_append_only_update BEFORE UPDATE ON journal_entries BEGIN SELECT raise(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER journal_is_append_only_delete BEFORE DELETE ON journal_entries BEGIN SELECT raise(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER postings_are_append_only_update BEFORE UPDATE ON postings BEGIN SELECT raise(ABORT, 'postings are append-only'); END;
CREATE TRIGGER postings_are_append_only_delete BEFORE DELETE ON postings BEGIN SELECT raise(ABORT, 'postings are append-only'); END;
