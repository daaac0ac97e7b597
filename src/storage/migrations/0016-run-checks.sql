-- For a list of more than two values, IN makes a temporary table for each row that is written: in the checks of `runs` and
-- the condition of an index, that took as long as all the rest of the row. OR compares.
CREATE TABLE runs_checked (
  run_id TEXT PRIMARY KEY,
  agent_id TEXT NOT NULL REFERENCES agents ON DELETE CASCADE,
  instance_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
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
  -- Where in the agent's log the run begins, so that its own stream is a range of it.
  first_event_id INTEGER NOT NULL,
  -- Of its instance, when it was queued.
  stops INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  -- What it waits for.
  waiting_kind TEXT CHECK (waiting_kind IS NULL OR waiting_kind = 'approval' OR waiting_kind = 'answer'
    OR waiting_kind = 'agent' OR waiting_kind = 'tool'),
  waiting_id TEXT CHECK ((status = 'waiting') = (waiting_kind IS NOT NULL) AND (waiting_kind IS NULL) = (waiting_id IS NULL)),
  -- What it had done when it waited, and the last event that this covers. Last, because it may be large.
  journal_up_to INTEGER,
  journal TEXT CHECK ((journal IS NULL) = (journal_up_to IS NULL))
) STRICT;
INSERT INTO runs_checked SELECT run_id, agent_id, instance_id, conversation_id, message_id, status, origin_type, origin_id,
  model, error_code, error_message, steps, prompt_tokens, completion_tokens, first_event_id, stops, created_at, started_at,
  finished_at, waiting_kind, waiting_id, journal_up_to, journal FROM runs;
DROP TABLE runs;
ALTER TABLE runs_checked RENAME TO runs;
CREATE INDEX runs_by_agent ON runs (agent_id, status, first_event_id);
CREATE INDEX runs_by_conversation ON runs (conversation_id, status, first_event_id);
CREATE INDEX unfinished_runs_by_instance ON runs (instance_id, run_id)
  WHERE status = 'queued' OR status = 'running' OR status = 'waiting';
