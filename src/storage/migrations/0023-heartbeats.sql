-- What an agent's owner says about its heartbeat, as JSON (docs/contract/api.md, Heartbeat).
ALTER TABLE agents ADD COLUMN heartbeat TEXT;

-- It is due like a schedule, and its times are decided like a schedule's.
ALTER TABLE schedules ADD COLUMN kind TEXT NOT NULL DEFAULT 'schedule' CHECK (kind = 'schedule' OR kind = 'heartbeat');
CREATE UNIQUE INDEX schedules_heartbeat ON schedules (agent_id) WHERE kind = 'heartbeat';

-- An agent has one at most, so that the limit of agents is one for heartbeats too.
DROP TRIGGER schedule_added;
CREATE TRIGGER schedule_added AFTER INSERT ON schedules BEGIN
  UPDATE account_usage SET history_bytes = history_bytes + 512 + octet_length(NEW.message),
    schedules = schedules + (NEW.kind = 'schedule')
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = NEW.agent_id));
END;
DROP TRIGGER schedule_removed;
CREATE TRIGGER schedule_removed AFTER DELETE ON schedules BEGIN
  UPDATE account_usage SET history_bytes = history_bytes - 512 - octet_length(OLD.message),
    schedules = schedules - (OLD.kind = 'schedule')
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = OLD.agent_id));
  DELETE FROM schedule_slots WHERE schedule_id = OLD.schedule_id;
END;
