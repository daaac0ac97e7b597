-- The owner's word on an agent's tools: name → policy. Null where nothing was said.
ALTER TABLE agents ADD COLUMN tools TEXT CHECK (json_valid(tools));

-- What strangers may have written. No tool can set or clear these marks: the host does, with what it commits.
ALTER TABLE workspace_files ADD COLUMN tainted INTEGER NOT NULL DEFAULT 0 CHECK (tainted IN (0, 1));
CREATE INDEX tainted_files ON workspace_files (agent_id, name) WHERE tainted = 1;
ALTER TABLE messages ADD COLUMN tainted INTEGER NOT NULL DEFAULT 0 CHECK (tainted IN (0, 1));
CREATE INDEX tainted_messages ON messages (conversation_id, message_seq) WHERE tainted = 1;
-- Runs that are not over. A table of its own, so that no other run pays for it.
CREATE TABLE tainted_runs (run_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

-- What a person is to decide, or has decided: about a tool's call, or the answers to an agent's questions.
CREATE TABLE approvals (
  approval_id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  -- Where its run begins in the agent's log: what was cleared is seen by nobody.
  first_event_id INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('tool', 'question')),
  status TEXT NOT NULL CHECK (status IN ('open', 'approved', 'denied', 'answered', 'expired', 'cancelled')),
  tool TEXT NOT NULL,
  -- JSON, exactly as it would be executed, and the SHA-256 of its canonical form.
  input TEXT NOT NULL CHECK (json_valid(input)),
  input_hash TEXT NOT NULL CHECK (length(input_hash) = 64),
  -- The version of the file that the call changes, when it was asked about; null where there was none.
  basis TEXT,
  tainted INTEGER NOT NULL CHECK (tainted IN (0, 1)),
  questions TEXT CHECK (json_valid(questions)),
  answers TEXT CHECK (json_valid(answers)),
  note TEXT,
  -- The name of the account; null where nobody decided.
  decided_by TEXT,
  decided_at INTEGER,
  expires_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  CHECK ((kind = 'question') = (questions IS NOT NULL)),
  CHECK ((status = 'answered') = (answers IS NOT NULL)),
  CHECK ((status = 'open') = (decided_at IS NULL))
) STRICT;
CREATE INDEX approvals_by_account ON approvals (account_id, approval_id);
CREATE INDEX approvals_by_conversation ON approvals (conversation_id, approval_id);
CREATE INDEX open_approvals_by_run ON approvals (run_id, approval_id) WHERE status = 'open';
CREATE INDEX open_approvals_by_account ON approvals (account_id) WHERE status = 'open';
CREATE INDEX open_approvals_by_expiry ON approvals (expires_at) WHERE status = 'open';

-- What need not be asked again: calls of one tool by one agent, to one host by one method.
CREATE TABLE approval_rules (
  rule_id TEXT PRIMARY KEY,
  instance_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  -- With its port. Null, like the method, for a call that goes to no address.
  host TEXT,
  method TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX approval_rules_by_instance ON approval_rules (instance_id, rule_id);
CREATE INDEX approval_rules_by_agent ON approval_rules (agent_id, rule_id);
CREATE UNIQUE INDEX approval_rules_by_call
  ON approval_rules (agent_id, tool, coalesce(host, ''), coalesce(method, ''));
