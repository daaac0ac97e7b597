-- What the history of an account's conversations takes, against its quota: texts and senders, and 512 bytes for each
-- message, which are its row, its run's and their indexes. What was cleared counts until its rows are cleared away.
ALTER TABLE account_usage ADD COLUMN history_bytes INTEGER NOT NULL DEFAULT 0 CHECK (history_bytes >= 0);
-- What the kept events of an agent take: their data, and 128 bytes for each. Appending adds to it in the statement that
-- numbers the events, so there is no trigger for that.
ALTER TABLE agents ADD COLUMN event_bytes INTEGER NOT NULL DEFAULT 0;
-- Up to where the agent's events are no longer kept.
ALTER TABLE agents ADD COLUMN pruned_event_id INTEGER NOT NULL DEFAULT 0;
-- How often the instance was stopped. A run that was queued before its last stop never starts and never goes on.
ALTER TABLE instances ADD COLUMN stops INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN stops INTEGER NOT NULL DEFAULT 0;

UPDATE account_usage SET history_bytes = coalesce((
  SELECT sum(512 + octet_length(m.text) + octet_length(m.sender_type) + octet_length(m.sender_id) + octet_length(m.sender_name))
  FROM instances AS i JOIN agents AS a USING (instance_id) JOIN messages AS m USING (agent_id)
  WHERE i.account_id = account_usage.account_id), 0);
UPDATE agents SET
  event_bytes = (SELECT coalesce(sum(128 + octet_length(data)), 0) FROM events WHERE events.agent_id = agents.agent_id),
  pruned_event_id = coalesce((SELECT min(event_id) - 1 FROM events WHERE events.agent_id = agents.agent_id), last_event_id);

CREATE TRIGGER message_added AFTER INSERT ON messages BEGIN
  UPDATE account_usage SET history_bytes = history_bytes + 512 + octet_length(NEW.text) + octet_length(NEW.sender_type)
    + octet_length(NEW.sender_id) + octet_length(NEW.sender_name)
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = NEW.agent_id));
END;
CREATE TRIGGER message_removed AFTER DELETE ON messages BEGIN
  UPDATE account_usage SET history_bytes = history_bytes - 512 - octet_length(OLD.text) - octet_length(OLD.sender_type)
    - octet_length(OLD.sender_id) - octet_length(OLD.sender_name)
    WHERE account_id = (SELECT account_id FROM instances WHERE instance_id =
      (SELECT instance_id FROM agents WHERE agent_id = OLD.agent_id));
END;
CREATE TRIGGER event_removed AFTER DELETE ON events BEGIN
  UPDATE agents SET event_bytes = event_bytes - 128 - octet_length(OLD.data) WHERE agent_id = OLD.agent_id;
END;

CREATE INDEX unfinished_runs_by_instance ON runs (instance_id, run_id) WHERE status IN ('queued', 'running');

-- What is still to be done after an instance's change, a slice at a time: to cancel the runs of before its last stop, and
-- to tell its agents, or who follows them that they are gone. Of each kind the newest alone counts: an instance that is stopped and started again and again makes
-- no more work than once.
CREATE TABLE instance_aftermath (
  instance_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('agent.deleted', 'cancel', 'instance.runway', 'instance.status')),
  -- JSON: what the event says.
  data TEXT NOT NULL,
  -- The last agent that was told, and the one at which all of them were: the round goes on past the end to the latter.
  told_to TEXT NOT NULL DEFAULT '',
  told_until TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (instance_id, kind)
) STRICT, WITHOUT ROWID;
