-- Ids of schedules begin with sch_ (docs/contract/api.md, Schedules); those of before with sched_, wherever they are told.
UPDATE account_usage SET history_bytes = history_bytes - 2 * shortened FROM (
  SELECT account_id, count(*) AS shortened FROM messages JOIN agents USING (agent_id) JOIN instances USING (instance_id)
    WHERE sender_id LIKE 'sched\_%' ESCAPE '\' GROUP BY account_id
) AS told WHERE told.account_id = account_usage.account_id;
UPDATE messages SET sender_id = 'sch_' || substr(sender_id, 7) WHERE sender_id LIKE 'sched\_%' ESCAPE '\';
UPDATE messages SET origin_id = 'sch_' || substr(origin_id, 7) WHERE origin_id LIKE 'sched\_%' ESCAPE '\';
UPDATE runs SET origin_id = 'sch_' || substr(origin_id, 7) WHERE origin_id LIKE 'sched\_%' ESCAPE '\';
UPDATE conversations SET origin_id = 'sch_' || substr(origin_id, 7) WHERE origin_id LIKE 'sched\_%' ESCAPE '\';
UPDATE schedule_slots SET schedule_id = 'sch_' || substr(schedule_id, 7) WHERE schedule_id LIKE 'sched\_%' ESCAPE '\';
UPDATE schedules SET schedule_id = 'sch_' || substr(schedule_id, 7) WHERE schedule_id LIKE 'sched\_%' ESCAPE '\';

-- In the JSON of events, where quotes of what somebody has written are escaped.
CREATE TEMP TABLE renamed AS
  SELECT rowid AS event, agent_id, octet_length(data) AS before,
    replace(replace(data, '"id":"sched_', '"id":"sch_'), '"scheduleId":"sched_', '"scheduleId":"sch_') AS data
  FROM events WHERE data LIKE '%d":"sched\_%' ESCAPE '\';
UPDATE events SET data = renamed.data FROM renamed WHERE events.rowid = renamed.event;
UPDATE agents SET event_bytes = event_bytes - shortened FROM (
  SELECT agent_id, sum(before - octet_length(data)) AS shortened FROM renamed GROUP BY agent_id
) AS told WHERE told.agent_id = agents.agent_id;
DROP TABLE renamed;
