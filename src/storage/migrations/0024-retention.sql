-- Messages that have reached the end of their life are no longer counted, and what was to be continued from them goes too.
-- What was cleared, or is being removed with its conversation, is not counted already.
CREATE INDEX responses_by_message ON responses (message_id);
DROP TRIGGER message_removed;
CREATE TRIGGER message_removed AFTER DELETE ON messages BEGIN
  UPDATE account_usage SET history_bytes = history_bytes - 512 - octet_length(OLD.text) - octet_length(OLD.sender_type)
    - octet_length(OLD.sender_id) - octet_length(OLD.sender_name)
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = OLD.agent_id));
  UPDATE conversations SET message_count = max(message_count - 1, 0)
    WHERE conversation_id = OLD.conversation_id AND cleared_message_seq < OLD.message_seq;
  DELETE FROM responses WHERE message_id = OLD.message_id;
END;

-- What an instance cost on days that are no longer kept, so that its meter and the ledger still add up.
CREATE TABLE usage_before (
  instance_id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts,
  cost INTEGER NOT NULL CHECK (cost >= 0)
) STRICT, WITHOUT ROWID;

-- Up to which row the host itself has removed the audit log, signed like a checkpoint: whoever has the database alone
-- cannot pass off a beginning that he removed as expired. One row.
CREATE TABLE audit_cut (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  audit_id INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  signature BLOB NOT NULL
) STRICT;
-- Checkpoints go with their rows, but for the one from which the kept rows continue.
DROP TRIGGER audit_checkpoints_are_append_only_delete;
CREATE TRIGGER audit_checkpoints_are_append_only_delete BEFORE DELETE ON audit_checkpoints
  WHEN NOT EXISTS (SELECT 1 FROM audit_checkpoints
    WHERE audit_id > old.audit_id AND audit_id < (SELECT min(audit_id) FROM audit))
  BEGIN SELECT raise(ABORT, 'audit checkpoints are append-only beyond the oldest row'); END;

-- What is removed by its age is found by it.
CREATE INDEX expired_invoices_by_age ON invoices (created_at) WHERE status = 'expired';
CREATE INDEX payments_by_invoice ON payments (invoice_id);
CREATE INDEX decided_claims_by_age ON claims (created_at) WHERE status <> 'pending';
CREATE INDEX closed_authorizations_by_age ON authorizations (created_at) WHERE status = 'credited' OR status = 'lapsed';
