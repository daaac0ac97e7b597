import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clearingPlan } from "../../src/app/clearing.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { createAftermath } from "../../src/messages/aftermath.ts";
import { conversationQueries, NEWEST } from "../../src/messages/conversation-queries.ts";
import { createEventLog } from "../../src/messages/events/event-log.ts";
import { messageQueries } from "../../src/messages/queries.ts";
import { parkingQueries } from "../../src/messages/runs/parking-queries.ts";
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

test("no query of the hot path reads a whole history", () => {
  const plans = plansOf(store, () => {
    const queries = messageQueries(store.db);
    const events = createEventLog(store, systemClock, () => {});
    queries.inTurn("a");
    queries.unfinishedOf("a");
    queries.unfinishedIn("c");
    queries.runsOf("c", "failed", 9, 10);
    queries.runsOfOthers("a", "failed", 9, 10);
    queries.stoppedIn("i", 100);
    queries.agentsWithUnfinished();
    queries.recent("a", 10);
    queries.messageAt(7);
    queries.reply("a", "m");
    queries.sizes("a", "desc", 5, 10);
    queries.page("a", "desc", 5, 10);
    for (const conversationId of [null, "c"]) events.follow("a", 1, { rows: 10, bytes: 1_000 }, conversationId);
    events.ofRun({ agentId: "a", conversationId: "c", runId: "r", firstEventId: 1 }, 0, 10);
    events.startAt("a", null);
    events.prune(1, null, 100);
    queries.isCleared({ conversationId: "c", firstEventId: 1 });
    const conversations = conversationQueries(store.db);
    conversations.find("c");
    conversations.page("a", "user", NEWEST, 10);
    conversations.count("a");
    conversations.oldestAtRest("a", "agent");
    conversations.copying();
    const parking = parkingQueries(store.db);
    parking.journal("r");
    parking.waitingOf("a");
    store.transaction(() => {
      conversations.clear("c", 0);
      conversations.setTitle("c", "x", 0);
      conversations.setState("c", "removed");
      parking.save("r", { status: "running", waitingKind: null, waitingId: null }, { upTo: 1, steps: [] });
      parking.forget("r");
    });
  });
  expect(plans.length).toBeGreaterThan(8);
  // Only the partial indexes of unfinished runs and of copies may be scanned: they are short.
  expect(plans.filter((plan) => /^SCAN (?!.*(unfinished_runs|conversations_being_copied))/.test(plan))).toEqual([]);
  // Runs are looked up by their status, so that a whole history is never read.
  const byRuns = plans.filter((plan) => /runs_by_(agent|conversation)/.test(plan));
  expect(byRuns.length).toBeGreaterThan(1);
  expect(byRuns.filter((plan) => !plan.includes("status=?"))).toEqual([]);
  // Those that are unfinished are looked up by their agent; only a start looks at all of them.
  const unfinished = plans.filter((plan) => plan.includes("unfinished_runs"));
  expect(unfinished.length).toBeGreaterThan(5);
  expect(unfinished.filter((plan) => !plan.includes("agent_id=?"))).toHaveLength(1);
});

test("what is visible of a cleared conversation is found in parts, by an index", () => {
  store.transaction(() => {
    const { sqlite } = store;
    sqlite.run("INSERT INTO accounts (account_id, email, name, created_at) VALUES ('acct', 'a@b.c', 'A', 0)");
    sqlite.run(
      "INSERT INTO instances (instance_id, account_id, name, status, created_at) VALUES ('i', 'acct', 'x', 'running', 0)",
    );
    sqlite.run(
      `INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at, last_event_id)
         VALUES ('agt_b', 'i', 'x', 'b', 'x', 0, 0, 5000)`,
    );
    const event = sqlite.prepare("INSERT INTO events VALUES ('agt_b', ?, 'run_b', 'conv_b', 'message.delta', '{}', 0)");
    for (let id = 1; id <= 5_000; id++) event.run(id);
    sqlite.run("UPDATE conversations SET cleared_event_id = 4500 WHERE conversation_id = 'conv_b'");
  });
  const log = createEventLog(store, systemClock, () => {});
  const follow = (after: number, conversationId = "conv_b") =>
    log.follow("agt_b", after, { rows: 10, bytes: 1_000 }, conversationId);
  const plans = plansOf(store, () => {
    follow(0);
    follow(0, "conv_other");
  });
  const looked = plans.filter((plan) => /events_(by_conversation|1)/.test(plan));
  expect(looked.filter((plan) => plan.includes("events_by_conversation")).length).toBeGreaterThan(0);
  expect(looked.filter((plan) => plan.includes("events_1")).length).toBeGreaterThan(0);
  expect(looked.filter((plan) => !plan.includes("event_id>? AND event_id<?"))).toEqual([]);
  expect(plans.filter((plan) => plan.startsWith("SCAN"))).toEqual([]);
  expect(follow(0)).toEqual({ rows: [], upTo: 1_000, isEnd: false });
  expect(follow(4_000)).toEqual({ rows: [], upTo: 4_500, isEnd: false });
  expect(follow(4_500)?.rows.map(({ eventId }) => eventId)).toEqual(
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((at) => 4_500 + at),
  );

  // What is hidden is removed a part at a time, too, and nothing else.
  const steps = clearingPlan(store, { workspaces: {}, conversations: { aftermath: {} }, memory: {} } as never).history;
  const most = { rows: 0 };
  const removing = plansOf(store, () => {
    for (const step of steps) {
      const slices = "rows" in step ? step.rows("conv_b") : [][Symbol.iterator]();
      for (let isDone = false; !isDone; ) {
        store.transaction(() => {
          const before = store.sqlite.query<{ rows: number }, []>("SELECT total_changes() AS rows").get()?.rows ?? 0;
          isDone = slices.next().done === true;
          const after = store.sqlite.query<{ rows: number }, []>("SELECT total_changes() AS rows").get()?.rows ?? 0;
          most.rows = Math.max(most.rows, after - before);
        });
      }
    }
  });
  expect(removing.filter((plan) => plan.startsWith("SCAN") && plan !== "SCAN CONSTANT ROW")).toEqual([]);
  expect(most.rows).toBeLessThan(1_000);
  expect(store.sqlite.query("SELECT min(event_id), count(*) FROM events WHERE agent_id = 'agt_b'").values()).toEqual([
    [4_501, 500],
  ]);
});

test("the events of a default conversation are found among those of others, a part at a time", () => {
  store.transaction(() => {
    const { sqlite } = store;
    sqlite.run("INSERT INTO accounts (account_id, email, name, created_at) VALUES ('acct2', 'd@e.f', 'D', 0)");
    sqlite.run(
      "INSERT INTO instances (instance_id, account_id, name, status, created_at) VALUES ('i2', 'acct2', 'x', 'running', 0)",
    );
    sqlite.run(
      `INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at, last_event_id)
         VALUES ('agt_d', 'i2', 'x', 'd', 'x', 0, 0, 2500)`,
    );
    const event = sqlite.prepare("INSERT INTO events VALUES ('agt_d', ?, ?, ?, 'run.queued', '{}', 0)");
    for (let id = 1; id < 2_500; id++) event.run(id, "run_o", "conv_other");
    event.run(2_500, "run_d", "conv_d");
  });
  const log = createEventLog(store, systemClock, () => {});
  const follow = (after: number) => log.follow("agt_d", after, { rows: 10, bytes: 1_000 }, "conv_d");
  expect(follow(0)).toEqual({ rows: [], upTo: 1_000, isEnd: false });
  expect(follow(1_000)).toEqual({ rows: [], upTo: 2_000, isEnd: false });
  expect(follow(2_000)).toMatchObject({ rows: [{ eventId: 2_500 }], upTo: 2_500, isEnd: true });
  const ofRun = { agentId: "agt_d", conversationId: "conv_d", runId: "run_d", firstEventId: 2_500 };
  expect(log.ofRun(ofRun, 2_499, 10)?.map(({ eventId }) => eventId)).toEqual([2_500]);
});

test("the aftermath of an instance's change, and what is pruned, is found by an index", async () => {
  const aftermath = createAftermath({ store, log, cancelStopped: () => 0, tell: () => 1 });
  const plans = plansOf(store, () => {
    createEventLog(store, systemClock, () => {}).prune(1, null, 100);
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

test("what is removed is found by an index, one slice at a time", () => {
  // The application's own plan: only what it lists is ever cleared.
  const aftermath = createAftermath({ store, log, cancelStopped: () => 0, tell: () => 0 });
  const plan = clearingPlan(store, {
    workspaces: {} as never,
    conversations: { aftermath } as never,
    memory: {} as never,
  });
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
  const plans = asked.flatMap((sql) => {
    const explained = store.sqlite.prepare(`EXPLAIN QUERY PLAN ${sql}`);
    const holes = Array.from({ length: explained.paramsCount }, () => null);
    return (explained.all(...holes) as { detail: string }[]).map((row) => row.detail);
  });
  expect(plans.length).toBeGreaterThan(8);
  expect(plans.filter((found) => found.startsWith("SCAN") && found !== "SCAN workspace_changes")).toEqual([]);
  expect(plans.filter((found) => found.includes("TEMP B-TREE"))).toEqual([]);
  // A table missing from the plan would be left to a cascade, which removes all its rows at once.
  const owned = store.sqlite
    .query<{ name: string }, []>(
      `SELECT DISTINCT t.name FROM sqlite_schema AS t, pragma_foreign_key_list(t.name) AS f
       WHERE t.type = 'table' AND f."table" IN ('agents', 'conversations', 'instances') UNION SELECT 'runs'`,
    )
    .all();
  expect(owned.length).toBeGreaterThan(6);
  expect(owned.filter(({ name }) => !asked.some((sql) => sql.includes(` FROM ${name} WHERE`)))).toEqual([]);
});
