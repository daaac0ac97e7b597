-- What an agent does by itself at certain times (docs/contract/api.md, Schedules).
CREATE TABLE schedules (
  schedule_id TEXT NOT NULL PRIMARY KEY,
  agent_id TEXT NOT NULL,
  name TEXT NOT NULL,
  message TEXT NOT NULL,
  cron TEXT,
  every_seconds INTEGER,
  -- From when an interval counts, in milliseconds.
  anchor INTEGER NOT NULL,
  time_zone TEXT NOT NULL,
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  missed TEXT NOT NULL CHECK (missed IN ('run_once', 'skip')),
  -- Wall times such as 08:00; both null for all day.
  active_from TEXT,
  active_to TEXT,
  conversation TEXT NOT NULL CHECK (conversation IN ('own', 'default')),
  announce INTEGER NOT NULL CHECK (announce IN (0, 1)),
  model TEXT,
  -- Its own conversation, once it has run.
  conversation_id TEXT,
  -- Null while it is off.
  next_at INTEGER,
  last_slot INTEGER,
  failures_in_a_row INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK ((cron IS NULL) <> (every_seconds IS NULL)),
  CHECK ((active_from IS NULL) = (active_to IS NULL)),
  CHECK (enabled = 1 OR next_at IS NULL)
) STRICT;
CREATE INDEX schedules_by_agent ON schedules (agent_id, schedule_id);
CREATE INDEX schedules_by_time ON schedules (next_at, schedule_id) WHERE next_at IS NOT NULL;

-- Each time of a schedule is decided once: its row is written with the run that it starts.
CREATE TABLE schedule_slots (
  schedule_id TEXT NOT NULL,
  slot_at INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status = 'ran' OR status = 'skipped' OR status = 'missed' OR status = 'failed'),
  reason TEXT,
  run_id TEXT,
  PRIMARY KEY (schedule_id, slot_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_slots_by_run ON schedule_slots (run_id) WHERE run_id IS NOT NULL;

-- What schedules take counts as history: a thousand of them with long messages are as large as a conversation.
CREATE TRIGGER schedule_added AFTER INSERT ON schedules BEGIN
  UPDATE account_usage SET history_bytes = history_bytes + 512 + octet_length(NEW.message),
    schedules = schedules + 1
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = NEW.agent_id));
END;
CREATE TRIGGER schedule_changed AFTER UPDATE OF message ON schedules BEGIN
  UPDATE account_usage SET history_bytes = history_bytes + octet_length(NEW.message) - octet_length(OLD.message)
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = NEW.agent_id));
END;
CREATE TRIGGER schedule_removed AFTER DELETE ON schedules BEGIN
  UPDATE account_usage SET history_bytes = history_bytes - 512 - octet_length(OLD.message),
    schedules = schedules - 1
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = OLD.agent_id));
  DELETE FROM schedule_slots WHERE schedule_id = OLD.schedule_id;
END;
ALTER TABLE account_usage ADD COLUMN schedules INTEGER NOT NULL DEFAULT 0 CHECK (schedules >= 0);

-- Who caused a message, if it was no person's and no answer to one.
ALTER TABLE messages ADD COLUMN origin_type TEXT;
ALTER TABLE messages ADD COLUMN origin_id TEXT;
