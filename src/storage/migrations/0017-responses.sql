-- What was said in a response that a later one may continue: its own turn and what the agent answered, exactly, with
-- functions' calls and results. Its conversation shows the same as messages.
CREATE TABLE responses (
  response_id TEXT NOT NULL PRIMARY KEY,
  agent_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  -- The agent's message there: without it, the response is gone too.
  message_id TEXT NOT NULL,
  -- The one before it, of the same agent; it may be gone.
  previous_id TEXT,
  -- JSON.
  said TEXT NOT NULL,
  tainted INTEGER NOT NULL CHECK (tainted IN (0, 1))
) STRICT;
CREATE INDEX responses_by_conversation ON responses (conversation_id, response_id);

CREATE TRIGGER response_added AFTER INSERT ON responses BEGIN
  UPDATE account_usage SET history_bytes = history_bytes + octet_length(NEW.said)
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = NEW.agent_id));
END;
CREATE TRIGGER response_removed AFTER DELETE ON responses BEGIN
  UPDATE account_usage SET history_bytes = history_bytes - octet_length(OLD.said)
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = OLD.agent_id));
END;

-- The form of a run's answer, if it is to be JSON (docs/contract/api.md, Structured answers), until the run is over.
ALTER TABLE runs ADD COLUMN output TEXT;
CREATE TRIGGER run_output_over AFTER UPDATE OF status ON runs
  WHEN NEW.output IS NOT NULL AND (NEW.status = 'completed' OR NEW.status = 'failed' OR NEW.status = 'cancelled')
BEGIN
  UPDATE runs SET output = NULL WHERE run_id = NEW.run_id;
END;
