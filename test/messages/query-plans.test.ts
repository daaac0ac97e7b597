import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clearingPlan } from "../../src/app/clearing.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { createAftermath } from "../../src/messages/aftermath.ts";
import { createEventLog } from "../../src/messages/events/event-log.ts";
import { messageQueries } from "../../src/messages/queries.ts";
import type { Run } from "../../src/messages/schema.ts";
import { openStore, type Store } from "../../src/storage/store.ts";
import { plansOf } from "../support/query-plans.ts";

const log = await createLog("silent", "json");
let store: Store;
const dataDir = mkdtempSync(join(tmpdir(), "roost-plans-"));
beforeAll(() => {
  store = openStore(dataDir);
});
afterAll(() => {
  store.close();
  rmSync(dataDir, { recursive: true });
});

test("no question of the hot path is answered by reading a whole history", () => {
  const plans = plansOf(store, () => {
    const queries = messageQueries(store.db);
    const events = createEventLog(store, systemClock, () => {});
    queries.nextUnfinished("a");
    queries.countUnfinished("a");
    queries.unfinishedOf("a");
    queries.stoppedIn("i", 100);
    queries.agentsWithUnfinished();
    queries.recent("a", 10);
    queries.text(7);
    queries.reply("a", "m");
    queries.sizes("a", "desc", 5, 10);
    queries.page("a", "desc", 5, 10);
    events.read("a", 1, 10);
    events.follow("a", 1, 10, 1_000);
    events.ofRun({ agentId: "a", runId: "r", firstEventId: 1 }, 0, 10);
    events.startAt("a", null);
    events.prune("", 100, 100);
    queries.isCleared({ agentId: "a", firstEventId: 1 } as Run);
  });
  expect(plans.length).toBeGreaterThan(8);
  // Runs are found by their id or among the unfinished ones; a full scan is never made.
  expect(plans.filter((plan) => /^SCAN (?!.*unfinished_runs)|runs_by_agent/.test(plan))).toEqual([]);
});

test("what lasts of a cleared conversation is found without reading over what goes", () => {
  store.transaction(() => {
    const { sqlite } = store;
    sqlite.run("INSERT INTO accounts (account_id, email, name, created_at) VALUES ('acct', 'a@b.c', 'A', 0)");
    sqlite.run(
      "INSERT INTO instances (instance_id, account_id, name, status, created_at) VALUES ('i', 'acct', 'x', 'running', 0)",
    );
    sqlite.run(
      `INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at, last_event_id,
         cleared_event_id) VALUES ('b', 'i', 'x', 'b', 'x', 0, 0, 9, 9)`,
    );
  });
  const plans = plansOf(store, () => void createEventLog(store, systemClock, () => {}).read("b", 0, 10));
  expect(plans.some((plan) => /lasting_events \(agent_id=\? AND event_id>\? AND event_id<\?\)/.test(plan))).toBe(true);
  expect(plans.filter((plan) => plan.startsWith("SCAN"))).toEqual([]);
});

test("what follows an instance's change, and what is pruned, is found by an index", async () => {
  const aftermath = createAftermath({ store, log, cancelStopped: () => 0, tell: () => 1 });
  const plans = plansOf(store, () => {
    createEventLog(store, systemClock, () => {}).prune("", 100, 100);
    store.transaction(() => {
      aftermath.add("i", "cancel");
      aftermath.add("i", "instance.status");
    });
  });
  expect(plans.some((plan) => /agents_by_instance \(instance_id=\? AND agent_id>\? AND agent_id<\?\)/.test(plan))).toBe(
    true,
  );
  expect(plans.filter((plan) => plan.startsWith("SCAN"))).toEqual([]);
  expect(plans.filter((plan) => plan.includes("TEMP B-TREE"))).toEqual([]);
});

test("what is cleared away is found by an index, a slice at a time", () => {
  // The composition root's plan: what it lists is all that is ever cleared.
  const aftermath = createAftermath({ store, log, cancelStopped: () => 0, tell: () => 0 });
  const plan = clearingPlan(store, { workspaces: {} as never, conversations: { aftermath } as never });
  const steps = Object.values(plan)
    .flat()
    .flatMap((step) => ("rows" in step ? [step.rows] : []));
  const asked: string[] = [];
  const { query } = store.sqlite;
  store.sqlite.query = ((sql: string) => {
    asked.push(sql);
    return query.call(store.sqlite, sql);
  }) as typeof query;
  try {
    for (const rows of steps) store.transaction(() => rows("x").next());
  } finally {
    Reflect.deleteProperty(store.sqlite, "query");
  }
  const plans = asked.flatMap((sql) =>
    (store.sqlite.prepare(`EXPLAIN QUERY PLAN ${sql}`).all("x", -1) as { detail: string }[]).map((row) => row.detail),
  );
  expect(plans.length).toBeGreaterThan(8);
  expect(plans.filter((found) => found.startsWith("SCAN") && found !== "SCAN workspace_changes")).toEqual([]);
  expect(plans.filter((found) => found.includes("TEMP B-TREE"))).toEqual([]);
  // A table that is not in the plan would be left to a cascade, which removes all of it in one go.
  const owned = store.sqlite
    .query<{ name: string }, []>(
      `SELECT DISTINCT t.name FROM sqlite_schema AS t, pragma_foreign_key_list(t.name) AS f
       WHERE t.type = 'table' AND f."table" IN ('agents', 'instances')`,
    )
    .all();
  expect(owned.length).toBeGreaterThan(6);
  expect(owned.filter(({ name }) => !asked.some((sql) => sql.includes(` FROM ${name} WHERE`)))).toEqual([]);
});
