-- Runs that another run has caused and waits for: messages to other agents, and copies of the agent itself
-- (docs/contract/runtime.md, Agents together). A row is written with its run, in the transaction in which the other parks.
CREATE TABLE delegations (
  run_id TEXT NOT NULL PRIMARY KEY,
  conversation_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  parent_run_id TEXT NOT NULL,
  -- Where the chain of such runs began.
  root_run_id TEXT NOT NULL,
  -- What the call of the parent waits for, and the place in that call.
  wait_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  -- Of a copy; null for another agent.
  title TEXT,
  -- The only tools of a copy, as a JSON list of their names; null for another agent.
  tools TEXT CHECK ((tools IS NULL) = (title IS NULL) AND json_valid(tools)),
  may_ask INTEGER NOT NULL CHECK (may_ask IN (0, 1)),
  is_open INTEGER NOT NULL CHECK (is_open IN (0, 1)),
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX delegations_by_wait ON delegations (wait_id, position);
CREATE INDEX delegations_by_parent ON delegations (parent_run_id);
CREATE INDEX delegations_by_root ON delegations (root_run_id);
CREATE INDEX delegations_by_conversation ON delegations (conversation_id, run_id);
CREATE INDEX open_delegations_by_account ON delegations (account_id) WHERE is_open = 1;
CREATE INDEX open_delegations_by_expiry ON delegations (expires_at) WHERE is_open = 1;

CREATE TRIGGER delegation_forgotten AFTER DELETE ON runs BEGIN
  DELETE FROM delegations WHERE run_id = OLD.run_id;
END;

-- In which an agent answers another one's conversation.
CREATE INDEX conversations_of_agents ON conversations (agent_id, origin_id) WHERE origin_type = 'agent';
