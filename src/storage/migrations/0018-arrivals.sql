-- An agent that is being imported has removed_at = 0 until it is complete: nobody sees it, as if it had been deleted, and it
-- counts for nothing. What a process leaves of it that was killed is found by this index.
CREATE INDEX agents_arriving ON agents (agent_id) WHERE removed_at = 0;

DROP TRIGGER agent_added;
CREATE TRIGGER agent_added AFTER INSERT ON agents WHEN NEW.removed_at IS NULL BEGIN
  UPDATE instances SET agent_count = agent_count + 1 WHERE instance_id = NEW.instance_id;
END;
CREATE TRIGGER agent_arrived AFTER UPDATE OF removed_at ON agents
  WHEN OLD.removed_at IS NOT NULL AND NEW.removed_at IS NULL BEGIN
  UPDATE instances SET agent_count = agent_count + 1, workspace_bytes = workspace_bytes + NEW.file_bytes
    WHERE instance_id = NEW.instance_id AND removed_at IS NULL;
END;
