-- The highest number that a removed message had. Memory, summaries and pages go by these numbers, so no two messages ever
-- have the same, also where the newest of all went with its agent.
CREATE TABLE removed_messages (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  highest_seq INTEGER NOT NULL
) STRICT;
INSERT INTO removed_messages SELECT 1, max(
  coalesce((SELECT max(cleared_message_seq) FROM conversations), 0),
  coalesce((SELECT max(to_seq) FROM summaries), 0),
  coalesce((SELECT max(up_to) FROM memory_forgotten), 0));
CREATE TRIGGER newest_message_removed AFTER DELETE ON messages
  WHEN OLD.message_seq > (SELECT highest_seq FROM removed_messages)
    AND OLD.message_seq > coalesce((SELECT max(message_seq) FROM messages), 0)
BEGIN
  UPDATE removed_messages SET highest_seq = OLD.message_seq;
END;
