import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "../../src/storage/store.ts";
import type { Scope } from "../../src/usage/budgets.ts";
import { createCallLog, type EndedCall } from "../../src/usage/call-log.ts";
import { ALWAYS } from "../../src/usage/periods.ts";
import { usageQueries } from "../../src/usage/queries.ts";
import { DAY } from "../lib/hand-clock.ts";

const dataDir = mkdtempSync(join(tmpdir(), "roost-call-log-"));
const store = openStore(dataDir);
const { sqlite } = store;
sqlite.run("PRAGMA foreign_keys = OFF");
afterAll(() => {
  store.close();
  rmSync(dataDir, { recursive: true });
});
const whose = { accountId: "acct_x", instanceId: "inst_x", agentId: "agt_x", model: "openai:x" };
const took = { promptTokens: 900, cachedTokens: 0, completionTokens: 24, cost: null, estimated: true, ofHost: true };
const cutOff = (runId: string, written: () => void): EndedCall => ({
  call: { ...whose, ...took, runId, purpose: "answer", outcome: "cancelled", createdAt: 0 },
  ...{ reservationId: null, tally: { isCounted: false }, written },
});
/** One that has taken 100 tokens so far. */
const insertRun = (runId: string, status: string) =>
  sqlite.run(
    `INSERT INTO runs (run_id, agent_id, instance_id, conversation_id, message_id, status, prompt_tokens, first_event_id,
       created_at) VALUES ('${runId}', 'agt_x', 'inst_x', 'conv_x', 'msg_x', '${status}', 100, 1, 0)`,
  );
const writtenCalls = () => sqlite.query("SELECT run_id, runs, prompt_tokens FROM model_calls").values();

test("calls that could not be written are written once they can be, though their run commits nothing more", async () => {
  const failed = Promise.withResolvers<object>();
  const log = { error: (fields: object) => failed.resolve(fields) };
  const calls = createCallLog(store, usageQueries(store.db), log, 5);
  calls.run();
  const done = Promise.withResolvers<void>();
  calls.add(cutOff("run_x", done.resolve));

  sqlite.run("ALTER TABLE model_calls RENAME TO elsewhere");
  calls.writeSoon("run_x");
  expect(await failed.promise).toMatchObject({ runId: "run_x" });
  sqlite.run("ALTER TABLE elsewhere RENAME TO model_calls");
  await done.promise;
  await calls.close();
  expect(writtenCalls()).toEqual([["run_x", 1, 900]]);
});

test("a call that was cut off is added to its run where that has ended, and waits for its next commit where it goes on", async () => {
  store.transaction(() => {
    sqlite.run("DELETE FROM model_calls");
    insertRun("run_over", "failed");
    insertRun("run_live", "running");
  });
  const runs = () => sqlite.query("SELECT run_id, prompt_tokens, completion_tokens FROM runs ORDER BY 1").values();
  const calls = createCallLog(store, usageQueries(store.db), { error() {} });
  const done = Promise.withResolvers<void>();
  calls.add(cutOff("run_live", () => {}));
  calls.writeCutOff("run_live");
  calls.add(cutOff("run_over", done.resolve));
  calls.writeCutOff("run_over");
  await done.promise;
  await store.commitSoon(() => {}, "process");
  expect(writtenCalls()).toEqual([["run_over", 1, 900]]);
  expect(runs()).toEqual([
    ["run_live", 100, 0],
    ["run_over", 1_000, 24],
  ]);
  expect(store.transaction(() => calls.writeOf("run_live"))).toMatchObject([{ call: took }]);
  // What is left when the host stops is added to its run too, which goes on from there.
  calls.add(cutOff("run_live", () => {}));
  await calls.close();
  expect(runs()[0]).toEqual(["run_live", 1_000, 24]);
});

const SECOND_DAY = { first: "1970-01-02", last: "1970-01-02", from: DAY, until: 2 * DAY };

test("calls that wait for their commit count for their own account, instance and agent, on their day, and for nobody else's", () => {
  const calls = createCallLog(store, usageQueries(store.db), { error() {} });
  const wait = (whose: Partial<EndedCall["call"]>, promptTokens: number) => {
    const { call, ...rest } = cutOff("run_waiting", () => {});
    const counted = { promptTokens, completionTokens: 1, cost: 10 * promptTokens, createdAt: DAY };
    calls.add({ ...rest, call: { ...call, ...counted, ...whose } });
  };
  const one = { accountId: "acct_one", instanceId: "inst_one", agentId: "agt_one" };
  wait(one, 100);
  wait({ ...one, agentId: "agt_two" }, 20);
  wait({ ...one, ofHost: false }, 3);
  // Neither on that day nor of this account.
  wait({ ...one, createdAt: DAY - 1 }, 1_000);
  wait({ ...one, createdAt: 2 * DAY }, 1_000);
  wait({ ...one, accountId: "acct_two" }, 5_000);
  const spent = (accountId: string, scope: Scope, ownerId: string) =>
    calls.spent(accountId, scope, ownerId, SECOND_DAY);
  expect(spent("acct_one", "account", "acct_one")).toEqual({ tokens: 126, cost: 1_230 });
  expect(spent("acct_one", "host", "acct_one")).toEqual({ tokens: 122, cost: 1_200 });
  expect(spent("acct_one", "instance", "inst_one")).toEqual({ tokens: 126, cost: 1_230 });
  expect(spent("acct_one", "agent", "agt_one")).toEqual({ tokens: 105, cost: 1_030 });
  expect(spent("acct_two", "account", "acct_two")).toEqual({ tokens: 5_001, cost: 50_000 });
});

test("what one message's runs have taken includes their calls that wait for their commit, and no other run's", () => {
  store.transaction(() => {
    for (const [runId, rootRunId] of [
      ["run_first", "run_root"],
      ["run_second", "run_root"],
      ["run_other", "run_elsewhere"],
    ] as const) {
      insertRun(runId, "running");
      sqlite.run(
        `INSERT INTO delegations (run_id, conversation_id, account_id, parent_run_id, root_run_id, wait_id, position,
           may_ask, is_open, expires_at) VALUES ('${runId}', 'conv_x', 'acct_x', '${rootRunId}', '${rootRunId}', 'x', 0, 0, 1, 0)`,
      );
    }
  });
  const calls = createCallLog(store, usageQueries(store.db), { error() {} });
  const spent = () => calls.spent("acct_x", "message", "run_root", ALWAYS);
  expect(spent()).toEqual({ tokens: 200, cost: 0 });
  calls.add(cutOff("run_first", () => {}));
  calls.add(cutOff("run_first", () => {}));
  calls.add(cutOff("run_other", () => {}));
  expect(spent()).toEqual({ tokens: 200 + 2 * 924, cost: 0 });
});

test("calls of a customer's own server count for the account, and not for what the host lets it take, added up or not", async () => {
  const calls = createCallLog(store, usageQueries(store.db), { error() {} });
  for (const [promptTokens, ofHost] of [
    [100, true],
    [3, false],
  ] as const) {
    const { call, ...rest } = cutOff("run_both", () => {});
    calls.add({ ...rest, call: { ...call, accountId: "acct_both", promptTokens, completionTokens: 0, ofHost } });
  }
  const spent = () =>
    (["host", "account"] as const).map((scope) => calls.spent("acct_both", scope, "acct_both", ALWAYS).tokens);
  store.transaction(() => calls.writeOf("run_both"));
  expect(spent()).toEqual([100, 103]);
  await calls.total();
  expect(spent()).toEqual([100, 103]);
});
