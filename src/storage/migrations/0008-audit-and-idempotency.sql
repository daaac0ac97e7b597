-- Stored answers are bounded: `place` counts an account's upwards, so that the oldest is found without counting.
CREATE TABLE stored_answers (
  account_id TEXT NOT NULL REFERENCES accounts,
  key TEXT NOT NULL,
  place INTEGER NOT NULL,
  -- HMAC of the request under a key that is not in the database: a body may hold a secret that is easily guessed.
  request_mac BLOB NOT NULL,
  status INTEGER NOT NULL,
  -- Null for an answer that is too large to be kept.
  body TEXT,
  -- JSON, the path parameters of the GET that reads the record anew; null where there is none.
  record TEXT,
  -- Set for a message: the answer is then told from its run.
  run_id TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, key)
) STRICT, WITHOUT ROWID;
-- The plain hash of what is there goes, from the pages that held it too. Until they are a day old, these keys then fit no request (409): to forget them
-- would do again what a client repeats across the upgrade.
INSERT INTO stored_answers
  SELECT account_id, key, row_number() OVER (PARTITION BY account_id ORDER BY created_at), x'', status, body, NULL, run_id,
    created_at
  FROM idempotent_requests;
PRAGMA secure_delete = ON;
DROP TABLE idempotent_requests;
PRAGMA secure_delete = OFF;
ALTER TABLE stored_answers RENAME TO idempotent_requests;
CREATE INDEX idempotent_requests_by_age ON idempotent_requests (created_at);
CREATE UNIQUE INDEX idempotent_requests_by_place ON idempotent_requests (account_id, place);

-- The head of the audit log's chain at some row, signed by the host (host-keys.json): who has the database alone can
-- make no other chain that fits. Rows before the newest one's own may go, oldest first; the rest is append-only.
CREATE TABLE audit_checkpoints (
  audit_id INTEGER PRIMARY KEY,
  hash BLOB NOT NULL,
  -- Rows that were ever written up to this one, those that are gone included.
  rows INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  signature BLOB NOT NULL
) STRICT;
CREATE TRIGGER audit_checkpoints_are_append_only_update BEFORE UPDATE ON audit_checkpoints
  BEGIN SELECT raise(ABORT, 'audit checkpoints are append-only'); END;
CREATE TRIGGER audit_checkpoints_are_append_only_delete BEFORE DELETE ON audit_checkpoints
  BEGIN SELECT raise(ABORT, 'audit checkpoints are append-only'); END;
DROP TRIGGER audit_is_append_only_delete;
CREATE TRIGGER audit_is_append_only_delete BEFORE DELETE ON audit
  WHEN NOT EXISTS (SELECT 1 FROM audit_checkpoints WHERE audit_id > old.audit_id)
    OR EXISTS (SELECT 1 FROM audit WHERE audit_id < old.audit_id)
  BEGIN SELECT raise(ABORT, 'audit is append-only beyond its checkpoints'); END;
