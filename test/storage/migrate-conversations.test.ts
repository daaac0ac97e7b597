import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clearingPlan } from "../../src/app/clearing.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { conversationQueries } from "../../src/messages/conversation-queries.ts";
import { createEventLog } from "../../src/messages/events/event-log.ts";
import { messageQueries } from "../../src/messages/queries.ts";
import { migrate } from "../../src/storage/migrate.ts";
import { createRemovals } from "../../src/storage/removals.ts";
import { openStore, type Store } from "../../src/storage/store.ts";

const MIGRATIONS = join(import.meta.dir, "../../src/storage/migrations");
const BEFORE = readdirSync(MIGRATIONS)
  .sort()
  .filter((name) => name < "0010")
  .map((name) => readFileSync(join(MIGRATIONS, name), "utf8"));

const HEX = "0123456789abcdef".repeat(2);
const [ADA, BO] = [`agt_${HEX}`, `agt_${HEX.replaceAll("0", "f")}`];
const [OF_ADA, OF_BO] = [ADA, BO].map((id) => id.replace("agt_", "conv_")) as [string, string];

/**
 * A data folder of the previous release: Ada's messages are being cleared, and she has one run in progress and one that
 * waits.
 */
const OLD_DATA = `
  INSERT INTO accounts (account_id, email, name, created_at) VALUES ('acct_a', 'ada@example.org', 'Ada', 1);
  INSERT INTO instances (instance_id, account_id, name, status, created_at) VALUES ('inst_a', 'acct_a', 'one', 'running', 2);
  INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at, last_event_id,
      cleared_message_seq, cleared_event_id, event_bytes) VALUES
    ('${ADA}', 'inst_a', 'Ada', 'ada', 'Ada', 3, 3, 7, 1, 3, 0), ('${BO}', 'inst_a', 'Bo', 'bo', 'Bo', 4, 4, 0, 0, 0, 0);
  INSERT INTO messages (message_seq, message_id, agent_id, run_id, role, text, sender_type, sender_id, sender_name, created_at)
    VALUES (1, 'msg_1', '${ADA}', 'run_1', 'user', 'old secret', 'human', 'x', 'x', 10),
      (2, 'msg_2', '${ADA}', 'run_2', 'user', 'begin', 'human', 'x', 'x', 20),
      (3, 'msg_3', '${ADA}', 'run_3', 'user', 'next', 'human', 'x', 'x', 30);
  INSERT INTO runs (run_id, agent_id, instance_id, message_id, status, first_event_id, created_at, started_at) VALUES
    ('run_1', '${ADA}', 'inst_a', 'msg_1', 'cancelled', 1, 10, 10),
    ('run_2', '${ADA}', 'inst_a', 'msg_2', 'running', 4, 20, 20),
    ('run_3', '${ADA}', 'inst_a', 'msg_3', 'queued', 7, 30, NULL);
  INSERT INTO events VALUES
    ('${ADA}', 1, 'run_1', 'run.queued', '{}', 10), ('${ADA}', 2, 'run_1', 'message.delta', '{"delta":"old secret"}', 10),
    ('${ADA}', 3, 'run_1', 'run.cancelled', '{}', 10), ('${ADA}', 4, 'run_2', 'run.queued', '{}', 20),
    ('${ADA}', 5, 'run_2', 'message.delta', '{"delta":"Once"}', 20), ('${ADA}', 6, NULL, 'agent.updated', '{}', 20),
    ('${ADA}', 7, 'run_3', 'run.queued', '{}', 30);
  UPDATE agents SET event_bytes = (SELECT coalesce(sum(128 + octet_length(data)), 0) FROM events
    WHERE events.agent_id = agents.agent_id);
  INSERT INTO removals (kind, id) VALUES ('conversation', '${ADA}');`;

let dataDir: string;
let store: Store;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-migrate-conversations-"));
  using sqlite = new Database(join(dataDir, "roost.db"), { create: true, strict: true });
  sqlite.run("PRAGMA journal_mode = WAL");
  sqlite.run("PRAGMA foreign_keys = ON");
  migrate(sqlite, dataDir, BEFORE);
  sqlite.run(OLD_DATA);
});
afterEach(() => {
  store.close();
  rmSync(dataDir, { recursive: true });
});

const all = (sql: string) => store.sqlite.query(sql).values();

test("an agent's messages and runs move to its default conversation, what was cleared stays hidden, and runs continue", async () => {
  store = openStore(dataDir);
  expect(all("PRAGMA foreign_key_check")).toEqual([]);
  expect(all("PRAGMA integrity_check")).toEqual([["ok"]]);
  const conversations = conversationQueries(store.db);
  const ada = conversations.find(OF_ADA);
  expect(ada).toMatchObject({ conversationId: OF_ADA, isDefault: true, messageCount: 2, updatedAt: 30, createdAt: 3 });
  expect(conversations.find(OF_BO)).toMatchObject({ agentId: BO, isDefault: true, messageCount: 0, updatedAt: 4 });
  const queries = messageQueries(store.db);
  expect(queries.page(OF_ADA, "asc", null, 10).map(({ text }) => text)).toEqual(["begin", "next"]);
  expect(queries.inTurn(ADA).map(({ runId, conversationId }) => [runId, conversationId])).toEqual([
    ["run_2", OF_ADA],
    ["run_3", OF_ADA],
  ]);
  const log = createEventLog(store, systemClock, () => {});
  const told = (of: string | null) => {
    const found = [];
    for (let after = 0, isEnd = false; !isEnd; ) {
      const next = log.follow(ADA, after, { rows: 10, bytes: 10_000 }, of);
      found.push(...(next?.rows ?? []));
      ({ upTo: after, isEnd } = next ?? { upTo: after, isEnd: true });
    }
    return found.map(({ eventId }) => eventId);
  };
  expect(told(null)).toEqual([1, 3, 4, 5, 6, 7]);
  expect(told(OF_ADA)).toEqual([1, 3, 4, 5, 7]);
  const bytes = all("SELECT history_bytes FROM account_usage");

  const silent = await createLog("silent", "json");
  const removals = createRemovals(store, silent);
  removals.run(clearingPlan(store, { workspaces: {}, conversations: { aftermath: {} }, memory: {} } as never));
  await removals.settled();
  await removals.stop();
  expect(told(null)).toEqual([1, 3, 4, 5, 6, 7]);
  expect(all("SELECT run_id FROM runs ORDER BY run_id")).toEqual([["run_2"], ["run_3"]]);
  expect(all("SELECT text FROM messages ORDER BY message_seq")).toEqual([["begin"], ["next"]]);
  expect(all("SELECT cleared_message_seq, cleared_event_id FROM conversations")).toEqual([
    [1, 0],
    [0, 0],
  ]);
  expect(all("SELECT history_bytes FROM account_usage")[0]?.[0]).toBe(Number(bytes[0]?.[0]) - 512 - 10 - 7);
  expect(all("SELECT event_bytes FROM agents ORDER BY agent_id")).toEqual([[Number(6 * 128 + 5 * 2 + 16)], [0]]);
});

test("an agent created afterwards gets its default conversation from the statement that creates it", () => {
  store = openStore(dataDir);
  store.transaction(() =>
    store.sqlite.run(
      `INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at)
       VALUES ('agt_c', 'inst_a', 'Cy', 'cy', 'Cy', 9, 9)`,
    ),
  );
  expect(conversationQueries(store.db).find("conv_c")).toMatchObject({
    agentId: "agt_c",
    isDefault: true,
    createdAt: 9,
  });
});
