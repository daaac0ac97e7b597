-- Each index in which every agent has its own place is a page that its message changes, at each of its two commits.
-- Most of what happens, happens in default conversations: their events are found among their agent's (event-reader.ts), and
-- there is only one of each agent.
DROP INDEX events_by_conversation;
CREATE INDEX events_by_conversation ON events (conversation_id, event_id)
  WHERE conversation_id <> replace(agent_id, 'agt_', 'conv_');
DROP INDEX conversations_by_activity;
CREATE INDEX conversations_by_activity ON conversations (agent_id, origin_type, updated_at, conversation_id)
  WHERE state = 'open' AND is_default = 0;
