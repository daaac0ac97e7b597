-- What each workspace holds, so that no request walks a tree. The contents are on disk.
CREATE TABLE workspace_files (
  agent_id TEXT NOT NULL REFERENCES agents,
  name TEXT NOT NULL,
  size INTEGER NOT NULL CHECK (size >= 0),
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (agent_id, name)
) STRICT, WITHOUT ROWID;
-- For names that a disk which ignores case takes for one. They are ASCII, so `lower` is all the folding there is.
CREATE INDEX workspace_files_by_folded_name ON workspace_files (agent_id, lower(name));

-- Sums of the above, kept by the triggers below.
ALTER TABLE agents ADD COLUMN file_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN file_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN file_name_bytes INTEGER NOT NULL DEFAULT 0;
-- When the index was last compared with the disk, as a whole. Null: never, it may lack everything.
ALTER TABLE agents ADD COLUMN indexed_at INTEGER;
-- Set when it was deleted: nobody sees it any more, and its rows and files are cleared away in slices (`removals`).
ALTER TABLE agents ADD COLUMN removed_at INTEGER;
-- Up to where its conversation was cleared: the last message, and the last event, that nobody sees any more.
ALTER TABLE agents ADD COLUMN cleared_message_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN cleared_event_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN workspace_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN removed_at INTEGER;

DROP INDEX instances_by_account;
CREATE INDEX instances_by_account ON instances (account_id, instance_id) WHERE removed_at IS NULL;
DROP INDEX agents_by_instance;
CREATE INDEX agents_by_instance ON agents (instance_id, agent_id) WHERE removed_at IS NULL;
CREATE INDEX agents_to_index ON agents (agent_id) WHERE indexed_at IS NULL AND removed_at IS NULL;
-- What stays in the log when a conversation is cleared, found without reading over what goes.
CREATE INDEX lasting_events ON events (agent_id, event_id)
  WHERE type NOT IN ('message.delta', 'message.completed', 'tool.started', 'tool.completed');

-- What an account has, against its quotas. Kept by the triggers below, so that no check sums rows.
CREATE TABLE account_usage (
  account_id TEXT PRIMARY KEY REFERENCES accounts,
  instances INTEGER NOT NULL DEFAULT 0 CHECK (instances >= 0),
  agents INTEGER NOT NULL DEFAULT 0 CHECK (agents >= 0),
  workspace_bytes INTEGER NOT NULL DEFAULT 0 CHECK (workspace_bytes >= 0)
) STRICT, WITHOUT ROWID;
INSERT INTO account_usage (account_id, instances, agents)
  SELECT account_id, count(*), sum(agent_count) FROM instances GROUP BY account_id;

-- Deleted things whose rows and files are still there. First come, first cleared.
CREATE TABLE removals (
  removal_id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL CHECK (kind IN ('instance', 'agent', 'conversation', 'trash')),
  -- Of the instance or the agent.
  id TEXT NOT NULL
) STRICT;

CREATE TRIGGER workspace_file_added AFTER INSERT ON workspace_files BEGIN
  UPDATE agents SET file_count = file_count + 1, file_bytes = file_bytes + NEW.size,
    file_name_bytes = file_name_bytes + length(NEW.name) WHERE agent_id = NEW.agent_id;
END;
CREATE TRIGGER workspace_file_resized AFTER UPDATE OF size ON workspace_files WHEN NEW.size <> OLD.size BEGIN
  UPDATE agents SET file_bytes = file_bytes + NEW.size - OLD.size WHERE agent_id = NEW.agent_id;
END;
CREATE TRIGGER workspace_file_removed AFTER DELETE ON workspace_files BEGIN
  UPDATE agents SET file_count = file_count - 1, file_bytes = file_bytes - OLD.size,
    file_name_bytes = file_name_bytes - length(OLD.name) WHERE agent_id = OLD.agent_id;
END;

-- What was deleted counts no more, from the moment that it is marked; clearing it away changes no sum.
CREATE TRIGGER workspace_resized AFTER UPDATE OF file_bytes ON agents
  WHEN NEW.file_bytes <> OLD.file_bytes AND NEW.removed_at IS NULL BEGIN
  UPDATE instances SET workspace_bytes = workspace_bytes + NEW.file_bytes - OLD.file_bytes
    WHERE instance_id = NEW.instance_id AND removed_at IS NULL;
END;
CREATE TRIGGER agent_added AFTER INSERT ON agents BEGIN
  UPDATE instances SET agent_count = agent_count + 1 WHERE instance_id = NEW.instance_id;
END;
CREATE TRIGGER agent_removed AFTER UPDATE OF removed_at ON agents
  WHEN OLD.removed_at IS NULL AND NEW.removed_at IS NOT NULL BEGIN
  UPDATE instances SET agent_count = agent_count - 1, workspace_bytes = workspace_bytes - NEW.file_bytes
    WHERE instance_id = NEW.instance_id AND removed_at IS NULL;
END;

CREATE TRIGGER instance_added AFTER INSERT ON instances BEGIN
  INSERT INTO account_usage (account_id, instances) VALUES (NEW.account_id, 1)
    ON CONFLICT DO UPDATE SET instances = instances + 1;
END;
CREATE TRIGGER instance_resized AFTER UPDATE OF agent_count, workspace_bytes ON instances WHEN NEW.removed_at IS NULL BEGIN
  UPDATE account_usage SET agents = agents + NEW.agent_count - OLD.agent_count,
    workspace_bytes = workspace_bytes + NEW.workspace_bytes - OLD.workspace_bytes WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER instance_removed AFTER UPDATE OF removed_at ON instances
  WHEN OLD.removed_at IS NULL AND NEW.removed_at IS NOT NULL BEGIN
  UPDATE account_usage SET instances = instances - 1, agents = agents - NEW.agent_count,
    workspace_bytes = workspace_bytes - NEW.workspace_bytes WHERE account_id = NEW.account_id;
END;
