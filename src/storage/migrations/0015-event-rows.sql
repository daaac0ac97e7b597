-- Events are kept in the order in which they are written, and found by their keys. When they were stored by their keys
-- (WITHOUT ROWID), every agent wrote to its own place of the table, and a message changed twice as many pages.
CREATE TABLE events_in_order (
  agent_id TEXT NOT NULL REFERENCES agents ON DELETE CASCADE,
  event_id INTEGER NOT NULL,
  run_id TEXT,
  -- Of what belongs to a run.
  conversation_id TEXT,
  type TEXT NOT NULL,
  -- JSON of the members that are the kind's own.
  data TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (agent_id, event_id)
) STRICT;
INSERT INTO events_in_order SELECT agent_id, event_id, run_id, conversation_id, type, data, created_at FROM events;
DROP TABLE events;
ALTER TABLE events_in_order RENAME TO events;
CREATE INDEX events_by_conversation ON events (conversation_id, event_id) WHERE conversation_id IS NOT NULL;
CREATE TRIGGER event_removed AFTER DELETE ON events BEGIN
  UPDATE agents SET event_bytes = event_bytes - 128 - octet_length(OLD.data) WHERE agent_id = OLD.agent_id;
END;
