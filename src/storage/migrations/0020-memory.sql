-- Agents whose memory has been searched. Only their indexes are kept up to date; others cost nothing until then.
CREATE TABLE memories (
  agent_id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What an agent's memory has yet to take in (docs/contract/runtime.md, Memory). The index itself is derived, and kept in files
-- of its own. Triggers fill the queue, so that no way to write a message or a file misses it.
CREATE TABLE memory_queue (
  account_id TEXT NOT NULL,
  -- In this order: everything anew (the source is how far that is: the name of a file, or *), a conversation by its id, a file by its name, the end.
  kind TEXT NOT NULL CHECK (kind = 'all' OR kind = 'conversation' OR kind = 'file' OR kind = 'swept'),
  agent_id TEXT NOT NULL,
  source TEXT NOT NULL,
  -- Counts, so that what changes while it is taken in is taken in again.
  changes INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (account_id, kind, agent_id, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_queue_by_agent ON memory_queue (agent_id, kind, source);

-- Agents with texts in their memory that have no vector yet.
CREATE TABLE memory_vectors_due (
  account_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  PRIMARY KEY (account_id, agent_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_vectors_due_by_agent ON memory_vectors_due (agent_id, account_id);

-- Which run wrote a line of the memory's files. The line is known by its hash, wherever it moves in its file.
CREATE TABLE memory_notes (
  note_id INTEGER PRIMARY KEY,
  agent_id TEXT NOT NULL,
  file TEXT NOT NULL,
  line_hash TEXT NOT NULL,
  run_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  tainted INTEGER NOT NULL CHECK (tainted = 0 OR tainted = 1),
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX memory_notes_by_agent ON memory_notes (agent_id, note_id);
CREATE INDEX memory_notes_by_file ON memory_notes (agent_id, file, note_id);
CREATE INDEX memory_notes_by_run ON memory_notes (agent_id, run_id, note_id);
CREATE INDEX memory_notes_by_conversation ON memory_notes (agent_id, conversation_id, note_id);

-- Which run wrote a file of the workspace last, as it was then.
CREATE TABLE memory_files (
  agent_id TEXT NOT NULL,
  name TEXT NOT NULL,
  size INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  PRIMARY KEY (agent_id, name)
) STRICT, WITHOUT ROWID;

-- Messages that the owner had the memory forget: of a run, or of a conversation (then run_id is *), up to this one.
CREATE TABLE memory_forgotten (
  conversation_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  up_to INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, run_id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER memory_of_message AFTER INSERT ON messages BEGIN
  INSERT INTO memory_queue (account_id, kind, agent_id, source)
    SELECT account_id, 'conversation', agent_id, NEW.conversation_id FROM memories WHERE agent_id = NEW.agent_id
    ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER memory_of_conversation AFTER UPDATE OF state, cleared_message_seq ON conversations
  WHEN OLD.state <> NEW.state OR OLD.cleared_message_seq < NEW.cleared_message_seq BEGIN
  INSERT INTO memory_queue (account_id, kind, agent_id, source)
    SELECT account_id, 'conversation', agent_id, NEW.conversation_id FROM memories WHERE agent_id = NEW.agent_id
    ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER memory_of_new_file AFTER INSERT ON workspace_files BEGIN
  INSERT INTO memory_queue (account_id, kind, agent_id, source)
    SELECT account_id, 'file', agent_id, NEW.name FROM memories WHERE agent_id = NEW.agent_id
    ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER memory_of_file AFTER UPDATE ON workspace_files BEGIN
  INSERT INTO memory_queue (account_id, kind, agent_id, source)
    SELECT account_id, 'file', agent_id, NEW.name FROM memories WHERE agent_id = NEW.agent_id
    ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER memory_of_removed_file AFTER DELETE ON workspace_files BEGIN
  INSERT INTO memory_queue (account_id, kind, agent_id, source)
    SELECT account_id, 'file', agent_id, OLD.name FROM memories WHERE agent_id = OLD.agent_id
    ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER memory_of_removed_agent AFTER UPDATE OF removed_at ON agents
  WHEN OLD.removed_at IS NULL AND NEW.removed_at IS NOT NULL BEGIN
  DELETE FROM memories WHERE agent_id = NEW.agent_id;
END;
