-- What an agent's default conversation has is not in the index of its agent's runs as well: it would be one more page that
-- each message changes.
DROP INDEX runs_by_agent;
CREATE INDEX runs_by_agent ON runs (agent_id, status, first_event_id)
  WHERE conversation_id <> replace(agent_id, 'agt_', 'conv_')
    AND (status = 'completed' OR status = 'failed' OR status = 'cancelled');
