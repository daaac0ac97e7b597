-- What earlier builds let SQLite measure of the tables at each stop: by what it found in a small one it reads all of it
-- instead of an index, also when it has grown. Without, a query is always read in one way, which tests see.
DROP TABLE IF EXISTS sqlite_stat1;

-- Each index in which every agent has its own place is a page that its message changes, at each of its two commits.
-- Most of what happens, happens in default conversations: their events are found among their agent's (event-reader.ts), and
-- there is only one of each agent.
DROP INDEX events_by_conversation;
CREATE INDEX events_by_conversation ON events (conversation_id, event_id)
  WHERE conversation_id <> replace(agent_id, 'agt_', 'conv_');
DROP INDEX conversations_by_activity;
CREATE INDEX conversations_by_activity ON conversations (agent_id, origin_type, updated_at, conversation_id)
  WHERE state = 'open' AND is_default = 0;

-- A run is not in the indexes of those that are over until it is. A foreign key would need an index of all of them: what
-- clears an agent or a conversation (src/app/clearing.ts) removes their runs before.
CREATE TABLE runs_without_owners (
  run_id TEXT PRIMARY KEY,
  agent_id TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status = 'running' OR status = 'completed' OR status = 'queued' OR status = 'waiting'
    OR status = 'failed' OR status = 'cancelled'),
  origin_type TEXT NOT NULL DEFAULT 'user' CHECK (origin_type = 'user' OR origin_type = 'openai'
    OR origin_type = 'schedule' OR origin_type = 'heartbeat' OR origin_type = 'trigger' OR origin_type = 'agent'),
  origin_id TEXT,
  -- Who answers; null until it has started.
  model TEXT,
  error_code TEXT,
  error_message TEXT,
  steps INTEGER NOT NULL DEFAULT 0,
  prompt_tokens INTEGER NOT NULL DEFAULT 0,
  completion_tokens INTEGER NOT NULL DEFAULT 0,
  cached_tokens INTEGER,
  cost INTEGER,
  -- Where in the agent's log the run begins, so that its own stream is a range of it.
  first_event_id INTEGER NOT NULL,
  -- Of its instance, when it was queued.
  stops INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  retry_at INTEGER,
  -- What it waits for.
  waiting_kind TEXT CHECK (waiting_kind IS NULL OR waiting_kind = 'approval' OR waiting_kind = 'answer'
    OR waiting_kind = 'agent' OR waiting_kind = 'tool'),
  waiting_id TEXT CHECK ((status = 'waiting') = (waiting_kind IS NOT NULL) AND (waiting_kind IS NULL) = (waiting_id IS NULL)),
  -- The form of its answer, until it is over; what it had done when it waited, and the last event that this covers. Last,
  -- because they may be large.
  output TEXT,
  journal_up_to INTEGER,
  journal TEXT CHECK ((journal IS NULL) = (journal_up_to IS NULL))
) STRICT;
INSERT INTO runs_without_owners SELECT run_id, agent_id, instance_id, conversation_id, message_id, status, origin_type, origin_id, model, error_code,
  error_message, steps, prompt_tokens, completion_tokens, cached_tokens, cost, first_event_id, stops, created_at, started_at,
  finished_at, retry_at, waiting_kind, waiting_id, output, journal_up_to, journal FROM runs;
DROP TABLE runs;
ALTER TABLE runs_without_owners RENAME TO runs;
CREATE INDEX runs_by_agent ON runs (agent_id, status, first_event_id)
  WHERE status = 'completed' OR status = 'failed' OR status = 'cancelled';
CREATE INDEX runs_by_conversation ON runs (conversation_id, status, first_event_id)
  WHERE status = 'completed' OR status = 'failed' OR status = 'cancelled';
CREATE INDEX unfinished_runs ON runs (agent_id, first_event_id)
  WHERE status = 'queued' OR status = 'running' OR status = 'waiting';
CREATE TRIGGER run_output_over AFTER UPDATE OF status ON runs
  WHEN NEW.output IS NOT NULL AND (NEW.status = 'completed' OR NEW.status = 'failed' OR NEW.status = 'cancelled')
BEGIN
  UPDATE runs SET output = NULL WHERE run_id = NEW.run_id;
END;
CREATE TRIGGER delegation_forgotten AFTER DELETE ON runs BEGIN
  DELETE FROM delegations WHERE run_id = OLD.run_id;
END;
