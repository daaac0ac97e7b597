-- What agents' models take, and what they may take (docs/contract/api.md, Usage of models).

-- Every call of a model, kept for some days. Those after the mark are not yet part of the totals.
CREATE TABLE model_calls (
  call_seq INTEGER NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  -- Null for what no agent asked.
  instance_id TEXT,
  agent_id TEXT,
  run_id TEXT,
  model TEXT NOT NULL,
  purpose TEXT NOT NULL,
  -- 'answered', or how it failed.
  outcome TEXT NOT NULL,
  -- Whether the host's models answered it, not a server that the instance brings.
  of_host INTEGER NOT NULL CHECK (of_host IN (0, 1)),
  -- 1 where it is the call by which its run is counted.
  runs INTEGER NOT NULL CHECK (runs IN (0, 1)),
  prompt_tokens INTEGER NOT NULL CHECK (prompt_tokens >= 0),
  cached_tokens INTEGER NOT NULL CHECK (cached_tokens >= 0),
  completion_tokens INTEGER NOT NULL CHECK (completion_tokens >= 0),
  -- Millionths of a US dollar; null where no price is known.
  cost INTEGER CHECK (cost >= 0),
  -- 1 where nobody has counted the tokens.
  estimated INTEGER NOT NULL CHECK (estimated IN (0, 1)),
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE model_usage_mark (
  only INTEGER NOT NULL PRIMARY KEY CHECK (only = 1),
  call_seq INTEGER NOT NULL
) STRICT;
INSERT INTO model_usage_mark VALUES (1, 0);

-- Totals of each day (UTC). `kind` says what `name` is: an agent, an instance, a model; of an account and of its calls
-- of the host's models there is one row a day, without a name.
CREATE TABLE model_usage (
  account_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  day TEXT NOT NULL,
  runs INTEGER NOT NULL,
  model_calls INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  cost INTEGER,
  PRIMARY KEY (account_id, kind, name, day)
) STRICT, WITHOUT ROWID;

CREATE INDEX model_usage_by_day ON model_usage (day);

-- The most that calls in progress may take, if a limit applies to them.
CREATE TABLE model_reservations (
  reservation_id INTEGER NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  instance_id TEXT,
  agent_id TEXT,
  run_id TEXT,
  model TEXT NOT NULL,
  purpose TEXT NOT NULL,
  of_host INTEGER NOT NULL CHECK (of_host IN (0, 1)),
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  cost INTEGER,
  created_at INTEGER NOT NULL
) STRICT;

-- Which limits' owners were warned, in which day or month.
CREATE TABLE budget_warnings (
  scope TEXT NOT NULL,
  owner_id TEXT NOT NULL,
  name TEXT NOT NULL,
  period TEXT NOT NULL,
  PRIMARY KEY (scope, owner_id, name, period)
) STRICT, WITHOUT ROWID;
CREATE INDEX budget_warnings_by_period ON budget_warnings (period);

ALTER TABLE accounts ADD COLUMN model_limits TEXT;
ALTER TABLE instances ADD COLUMN model_limits TEXT;
ALTER TABLE agents ADD COLUMN model_limits TEXT;
ALTER TABLE runs ADD COLUMN cached_tokens INTEGER;
ALTER TABLE runs ADD COLUMN cost INTEGER;
-- When a run that reached a limit may be tried again.
ALTER TABLE runs ADD COLUMN retry_at INTEGER;
