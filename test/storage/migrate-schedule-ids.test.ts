import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "../../src/storage/migrate.ts";

const MIGRATIONS = join(import.meta.dir, "../../src/storage/migrations");
const BEFORE = readdirSync(MIGRATIONS)
  .sort()
  .filter((name) => name < "0026")
  .map((name) => readFileSync(join(MIGRATIONS, name), "utf8"));
const ID = "0190f5e2c4a87b3d8e1f6a2b4c5d7e90";
const QUOTED = JSON.stringify('He wrote "id":"sched_" and sched_1.');

test("schedules of before keep their times, runs and messages under their new ids, and all sums stay exact", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-migrate-schedule-ids-"));
  using sqlite = new Database(join(dataDir, "roost.db"), { create: true, strict: true });
  migrate(sqlite, dataDir, BEFORE);
  sqlite.run(`
    INSERT INTO accounts (account_id, email, name, created_at) VALUES ('acct_a', 'a@example.com', 'A', 0);
    INSERT INTO instances (instance_id, account_id, name, status, created_at) VALUES ('inst_a', 'acct_a', 'n', 'running', 0);
    INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at)
      VALUES ('agt_a', 'inst_a', 'Ada', 'ada', 'Ada', 0, 0);
    INSERT INTO schedules (schedule_id, agent_id, name, message, every_seconds, anchor, time_zone, enabled, missed,
      conversation, announce, failures_in_a_row, created_at, updated_at)
      VALUES ('sched_${ID}', 'agt_a', 'Look', 'Look.', 60, 0, 'UTC', 0, 'skip', 'own', 1, 0, 0, 0);
    INSERT INTO schedule_slots VALUES ('sched_${ID}', 60000, 'ran', NULL, 'run_a');
    INSERT INTO conversations (conversation_id, agent_id, origin_type, origin_id, updated_at, created_at)
      VALUES ('conv_own', 'agt_a', 'schedule', 'sched_${ID}', 0, 0);
    INSERT INTO runs (run_id, agent_id, instance_id, conversation_id, message_id, status, origin_type, origin_id,
      first_event_id, created_at)
      VALUES ('run_a', 'agt_a', 'inst_a', 'conv_own', 'msg_a', 'completed', 'schedule', 'sched_${ID}', 1, 0);
    INSERT INTO messages (message_id, agent_id, conversation_id, run_id, role, text, sender_type, sender_id, sender_name,
      origin_type, origin_id, created_at)
      VALUES ('msg_a', 'agt_a', 'conv_own', 'run_a', 'user', 'sched_', 'schedule', 'sched_${ID}', 'Look', 'schedule',
        'sched_${ID}', 0)`);
  const data = `{"message":{"sender":{"type":"schedule","id":"sched_${ID}"}},"scheduleId":"sched_${ID}","text":${QUOTED}}`;
  sqlite.run("INSERT INTO events VALUES ('agt_a', 1, 'run_a', 'conv_own', 'schedule.failing', ?, 0)", [data]);
  sqlite.run("UPDATE agents SET event_bytes = (SELECT sum(128 + octet_length(data)) FROM events)");

  migrate(sqlite, dataDir);
  const id = `sch_${ID}`;
  const row = (sql: string) => Object.values(sqlite.query<Record<string, unknown>, []>(sql).get() ?? {});
  expect(row("SELECT schedule_id FROM schedules")).toEqual([id]);
  expect(row("SELECT schedule_id, run_id FROM schedule_slots")).toEqual([id, "run_a"]);
  expect(row("SELECT origin_id FROM conversations WHERE conversation_id = 'conv_own'")).toEqual([id]);
  expect(row("SELECT origin_id FROM runs")).toEqual([id]);
  expect(row("SELECT sender_id, origin_id, text FROM messages")).toEqual([id, id, "sched_"]);
  expect(row("SELECT data FROM events")).toEqual([
    `{"message":{"sender":{"type":"schedule","id":"${id}"}},"scheduleId":"${id}","text":${QUOTED}}`,
  ]);
  expect(row("SELECT event_bytes = (SELECT sum(128 + octet_length(data)) FROM events) FROM agents")).toEqual([1]);
  // Nothing is left of what the account holds once it is gone.
  sqlite.run("DELETE FROM messages");
  sqlite.run("DELETE FROM schedules");
  expect(row("SELECT history_bytes FROM account_usage")).toEqual([0]);
  rmSync(dataDir, { recursive: true, force: true });
});
