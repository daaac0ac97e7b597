-- An agent holds conversations. Its default one is there from its creation: see the trigger below.
CREATE TABLE conversations (
  conversation_id TEXT PRIMARY KEY,
  agent_id TEXT NOT NULL REFERENCES agents ON DELETE CASCADE,
  is_default INTEGER NOT NULL DEFAULT 0 CHECK (is_default IN (0, 1)),
  -- `copying`: a fork whose messages are still being copied. `removed`: deleted, and cleared away in slices. Nobody sees either.
  state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('copying', 'open', 'removed')),
  title TEXT CHECK (length(title) BETWEEN 1 AND 200),
  origin_type TEXT NOT NULL DEFAULT 'user'
    CHECK (origin_type IN ('user', 'schedule', 'heartbeat', 'trigger', 'agent', 'openai')),
  origin_id TEXT,
  -- Of the messages that are to be seen, and of the last activity; a trigger keeps both.
  message_count INTEGER NOT NULL DEFAULT 0 CHECK (message_count >= 0),
  updated_at INTEGER NOT NULL,
  -- Up to where it was cleared: the last message, and the last event, that nobody sees any more. 0: all of it is seen.
  cleared_message_seq INTEGER NOT NULL DEFAULT 0,
  cleared_event_id INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  CHECK (is_default = 0 OR state = 'open')
) STRICT;

-- The default one has its agent's number, so that it is found without being looked for.
INSERT INTO conversations (conversation_id, agent_id, is_default, message_count, updated_at, cleared_message_seq,
    cleared_event_id, created_at)
  SELECT replace(agent_id, 'agt_', 'conv_'), agent_id, 1,
    (SELECT count(*) FROM messages AS m WHERE m.agent_id = a.agent_id AND m.message_seq > a.cleared_message_seq),
    max(a.created_at, coalesce((SELECT created_at FROM messages AS m WHERE m.agent_id = a.agent_id
      ORDER BY message_seq DESC LIMIT 1), 0)),
    cleared_message_seq, cleared_event_id, created_at
  FROM agents AS a;
ALTER TABLE agents DROP COLUMN cleared_message_seq;
ALTER TABLE agents DROP COLUMN cleared_event_id;

CREATE UNIQUE INDEX default_conversations ON conversations (agent_id) WHERE is_default = 1;
CREATE INDEX conversations_by_agent ON conversations (agent_id, conversation_id);
CREATE INDEX conversations_by_activity ON conversations (agent_id, origin_type, updated_at, conversation_id)
  WHERE state = 'open';
CREATE INDEX conversations_being_copied ON conversations (conversation_id) WHERE state = 'copying';
-- Those of whose events some are there that nobody sees.
CREATE INDEX conversations_cleared ON conversations (agent_id, cleared_event_id) WHERE cleared_event_id > 0;

CREATE TABLE runs_of_conversations (
  run_id TEXT PRIMARY KEY,
  agent_id TEXT NOT NULL REFERENCES agents ON DELETE CASCADE,
  instance_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  message_id TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
  origin_type TEXT NOT NULL DEFAULT 'user'
    CHECK (origin_type IN ('user', 'schedule', 'heartbeat', 'trigger', 'agent', 'openai')),
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
  finished_at INTEGER
) STRICT;
INSERT INTO runs_of_conversations (run_id, agent_id, instance_id, conversation_id, message_id, status, error_code,
    error_message, steps, prompt_tokens, completion_tokens, first_event_id, stops, created_at, started_at, finished_at)
  SELECT run_id, agent_id, instance_id, replace(agent_id, 'agt_', 'conv_'), message_id, status, error_code,
    error_message, steps, prompt_tokens, completion_tokens, first_event_id, stops, created_at, started_at, finished_at
  FROM runs;
DROP TABLE runs;
ALTER TABLE runs_of_conversations RENAME TO runs;
-- Those that are not over are few, and found by their status.
CREATE INDEX runs_by_agent ON runs (agent_id, status, first_event_id);
CREATE INDEX runs_by_conversation ON runs (conversation_id, status, first_event_id);
CREATE INDEX unfinished_runs_by_instance ON runs (instance_id, run_id) WHERE status IN ('queued', 'running', 'waiting');

-- A message belongs to its conversation; whose that is stands in it too, for the sums.
CREATE TABLE messages_of_conversations (
  message_seq INTEGER PRIMARY KEY,
  message_id TEXT NOT NULL UNIQUE,
  agent_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
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
INSERT INTO messages_of_conversations SELECT message_seq, message_id, agent_id, replace(agent_id, 'agt_', 'conv_'), run_id,
    role, text, sender_type, sender_id, sender_name, in_reply_to, finish_reason, prompt_tokens, completion_tokens, created_at
  FROM messages;
DROP TABLE messages;
ALTER TABLE messages_of_conversations RENAME TO messages;
CREATE INDEX messages_by_conversation ON messages (conversation_id, message_seq);

-- A conversation that is deleted leaves in the log that its runs were, and how they ended.
CREATE TABLE events_of_conversations (
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
) STRICT, WITHOUT ROWID;
INSERT INTO events_of_conversations SELECT agent_id, event_id, run_id,
    CASE WHEN run_id IS NOT NULL THEN replace(agent_id, 'agt_', 'conv_') END, type, data, created_at
  FROM events;
DROP TABLE events;
ALTER TABLE events_of_conversations RENAME TO events;
CREATE INDEX events_by_conversation ON events (conversation_id, event_id) WHERE conversation_id IS NOT NULL;

CREATE TRIGGER agent_has_conversation AFTER INSERT ON agents BEGIN
  INSERT INTO conversations (conversation_id, agent_id, is_default, updated_at, created_at)
    VALUES (replace(NEW.agent_id, 'agt_', 'conv_'), NEW.agent_id, 1, NEW.created_at, NEW.created_at);
END;
CREATE TRIGGER message_added AFTER INSERT ON messages BEGIN
  UPDATE account_usage SET history_bytes = history_bytes + 512 + octet_length(NEW.text) + octet_length(NEW.sender_type)
    + octet_length(NEW.sender_id) + octet_length(NEW.sender_name)
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = NEW.agent_id));
  UPDATE conversations SET message_count = message_count + 1, updated_at = max(updated_at, NEW.created_at)
    WHERE conversation_id = NEW.conversation_id;
END;
CREATE TRIGGER message_removed AFTER DELETE ON messages BEGIN
  UPDATE account_usage SET history_bytes = history_bytes - 512 - octet_length(OLD.text) - octet_length(OLD.sender_type)
    - octet_length(OLD.sender_id) - octet_length(OLD.sender_name)
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = OLD.agent_id));
END;
CREATE TRIGGER event_removed AFTER DELETE ON events BEGIN
  UPDATE agents SET event_bytes = event_bytes - 128 - octet_length(OLD.data) WHERE agent_id = OLD.agent_id;
END;

-- `history` is what a conversation held that was cleared; `conversation` is one that was deleted.
CREATE TABLE removals_of_conversations (
  removal_id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL CHECK (kind IN ('instance', 'agent', 'conversation', 'history', 'trash')),
  -- Of the instance, the agent or the conversation.
  id TEXT NOT NULL
) STRICT;
INSERT INTO removals_of_conversations SELECT removal_id, CASE kind WHEN 'conversation' THEN 'history' ELSE kind END,
    CASE kind WHEN 'conversation' THEN replace(id, 'agt_', 'conv_') ELSE id END
  FROM removals;
DROP TABLE removals;
ALTER TABLE removals_of_conversations RENAME TO removals;
CREATE INDEX removals_by_id ON removals (id);
