import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId } from "../../src/lib/id.ts";
import { createAging } from "../../src/messages/aging.ts";
import { createEventLog } from "../../src/messages/events/event-log.ts";
import { messageQueries } from "../../src/messages/queries.ts";
import { createRetention, type Life } from "../../src/storage/retention.ts";
import { openStore, type Store } from "../../src/storage/store.ts";
import { createUsageAging } from "../../src/usage/aging.ts";
import { createCallLog } from "../../src/usage/call-log.ts";
import { usageQueries } from "../../src/usage/queries.ts";
import { DAY, handClock } from "../lib/hand-clock.ts";

const AGENTS = 5;
const EXCHANGES_A_DAY = 20;
const DAYS = 365;
/** After so many, as much goes as comes. */
const FULL_AFTER = 30;

const dataDir = mkdtempSync(join(tmpdir(), "roost-steady-"));
const clock = handClock(1_700_000_000_000);
let store: Store;
beforeAll(() => {
  store = openStore(dataDir);
  const { sqlite } = store;
  sqlite.run("INSERT INTO accounts (account_id, email, name, created_at) VALUES ('acct_x', 'a@b.c', 'A', 0)");
  sqlite.run(
    "INSERT INTO instances (instance_id, account_id, name, status, created_at) VALUES ('inst_x', 'acct_x', 'x', 'stopped', 0)",
  );
  for (let agent = 0; agent < AGENTS; agent++)
    sqlite.run(
      `INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at)
       VALUES ('agt_${agent}', 'inst_x', 'x', 'x${agent}', 'x', 0, 0)`,
    );
});
afterAll(() => {
  store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

test("in a year of use, a database stops growing once as much comes to the end of its life as is written", async () => {
  const { sqlite } = store;
  const queries = messageQueries(store.db);
  const events = createEventLog(store, clock, () => {});
  const { messages, runs } = createAging(
    store,
    () => {},
    () => {},
  );
  const usage = createUsageAging(sqlite);
  const calls = createCallLog(store, usageQueries(store.db), { error: () => {} });
  const lives: Life[] = [
    { kind: "messages", keptMs: 20 * DAY, slice: messages },
    { kind: "runs", keptMs: 20 * DAY, slice: runs },
    { kind: "events", keptMs: 7 * DAY, slice: events.prune },
    { kind: "model_calls", keptMs: 7 * DAY, slice: usage.calls },
    { kind: "model_usage", keptMs: 20 * DAY, slice: usage.totals },
  ];
  const retention = createRetention(store, clock, async () => {});
  const none = {
    senderType: "human",
    senderId: "x",
    senderName: "x",
    tainted: false,
    originType: null,
    originId: null,
  };
  const rest = { ...none, finishReason: null, promptTokens: null, completionTokens: null };
  const run = sqlite.prepare(
    `INSERT INTO runs (run_id, agent_id, instance_id, conversation_id, message_id, status, first_event_id, created_at,
       finished_at) VALUES (?, ?, 'inst_x', ?, ?, 'completed', ?, ?, ?)`,
  );

  function exchange(agentId: string, at: number): void {
    const [runId, asked, answered] = [newId("run"), newId("msg"), newId("msg")];
    const conversationId = agentId.replace("agt_", "conv_");
    const [of, now] = [{ agentId, conversationId, runId }, clock.now()];
    const text = "x".repeat(50 + ((at * 97) % 900));
    queries.insertMessage({ ...rest, ...of, messageId: asked, role: "user", text, inReplyTo: null, createdAt: now });
    const batch = ["a", "b", "c", "d"].map((delta) => ({ type: "message.delta" as const, runId, delta: delta + text }));
    const last = events.append(agentId, batch, conversationId);
    const whose = { accountId: "acct_x", instanceId: "inst_x", agentId, runId, model: "openai:x", ofHost: true };
    const took = { promptTokens: 900, cachedTokens: 0, completionTokens: 24, cost: null, estimated: false };
    const call = { ...whose, ...took, purpose: "answer", outcome: "answered", createdAt: now };
    calls.add({ call, reservationId: null, tally: { isCounted: false }, written: () => {} });
    calls.writeOf(runId);
    run.run(runId, agentId, conversationId, asked, last - 3, now, now);
    queries.insertMessage({
      ...rest,
      ...of,
      messageId: answered,
      role: "agent",
      text,
      inReplyTo: asked,
      createdAt: now,
    });
  }

  const pages: number[] = [];
  for (let day = 0; day < DAYS; day++) {
    // Nobody waits for the disk here.
    await store.commitSoon(() => {
      for (let at = 0; at < AGENTS * EXCHANGES_A_DAY; at++) exchange(`agt_${at % AGENTS}`, day + at);
    }, "process");
    await calls.total();
    clock.advance(DAY);
    for (const life of lives) await retention.prune(life);
    pages.push(sqlite.query("PRAGMA page_count").values()[0]?.[0] as number);
  }
  const [full = 0, most] = [pages[FULL_AFTER], Math.max(...pages)];
  expect(full).toBeGreaterThan((pages[5] ?? 0) * 1.5);
  expect(most).toBeLessThan(full * 1.1);
  const count = (table: string) => sqlite.query(`SELECT count(*) FROM ${table}`).values()[0]?.[0];
  const aDay = AGENTS * EXCHANGES_A_DAY;
  expect([count("messages"), count("runs")]).toEqual([20 * aDay * 2, 20 * aDay]);
  expect(count("model_calls")).toBe(7 * aDay);
  expect(count("events")).toBeLessThanOrEqual(7 * aDay * 4);
  // Of an account a day: one row of itself, its models, its instance and the host's models, and one of each agent.
  expect(count("model_usage")).toBe(20 * (4 + AGENTS));
});
