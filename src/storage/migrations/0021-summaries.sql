-- About how many tokens a message's text has (src/runtime/tokens.ts counts in the same way), so that a prompt's messages are
-- chosen without reading them.
ALTER TABLE messages ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
UPDATE messages SET tokens = (2 * octet_length(text) - length(text) + 2) / 3;

-- What an agent did before it answered: the tools that it called, and what they returned, as later prompts show it.
CREATE TABLE message_steps (
  message_id TEXT NOT NULL PRIMARY KEY,
  agent_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  -- JSON.
  steps TEXT NOT NULL,
  tokens INTEGER NOT NULL
) STRICT;
CREATE INDEX message_steps_by_conversation ON message_steps (conversation_id, message_id);

-- What stands in prompts for the oldest messages of a conversation, up to one; the messages stay. A later summary stands for
-- what an earlier one does, too.
CREATE TABLE summaries (
  conversation_id TEXT NOT NULL,
  to_seq INTEGER NOT NULL,
  from_seq INTEGER NOT NULL,
  agent_id TEXT NOT NULL,
  text TEXT NOT NULL,
  -- JSON: what was said word for word.
  items TEXT NOT NULL,
  -- How many messages it stands for.
  messages INTEGER NOT NULL CHECK (messages > 0),
  tainted INTEGER NOT NULL CHECK (tainted IN (0, 1)),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, to_seq)
) STRICT;

-- How often in a row the messages of a conversation could not be summarised, and how many there were at the last try.
ALTER TABLE conversations ADD COLUMN compaction_failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN compaction_failed_at INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER message_steps_added AFTER INSERT ON message_steps BEGIN
  UPDATE account_usage SET history_bytes = history_bytes + octet_length(NEW.steps)
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = NEW.agent_id));
END;
CREATE TRIGGER message_steps_removed AFTER DELETE ON message_steps BEGIN
  UPDATE account_usage SET history_bytes = history_bytes - octet_length(OLD.steps)
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = OLD.agent_id));
END;
CREATE TRIGGER summary_added AFTER INSERT ON summaries BEGIN
  UPDATE account_usage SET history_bytes = history_bytes + octet_length(NEW.text) + octet_length(NEW.items)
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = NEW.agent_id));
END;
CREATE TRIGGER summary_removed AFTER DELETE ON summaries BEGIN
  UPDATE account_usage SET history_bytes = history_bytes - octet_length(OLD.text) - octet_length(OLD.items)
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = OLD.agent_id));
END;
-- Whatever deletes a message: nothing that tells of it stays.
CREATE TRIGGER message_forgotten AFTER DELETE ON messages BEGIN
  DELETE FROM message_steps WHERE message_id = OLD.message_id;
  DELETE FROM summaries
    WHERE conversation_id = OLD.conversation_id AND to_seq >= OLD.message_seq AND from_seq <= OLD.message_seq;
END;
