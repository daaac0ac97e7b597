import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "../../src/storage/store.ts";
import { createCallLog, type EndedCall } from "../../src/usage/call-log.ts";
import { usageQueries } from "../../src/usage/queries.ts";

const dataDir = mkdtempSync(join(tmpdir(), "roost-call-log-"));
const store = openStore(dataDir);
const { sqlite } = store;
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
  sqlite.run("PRAGMA foreign_keys = OFF");
  store.transaction(() => {
    sqlite.run("DELETE FROM model_calls");
    for (const [runId, status] of [
      ["run_over", "failed"],
      ["run_live", "running"],
    ]) {
      sqlite.run(
        `INSERT INTO runs (run_id, agent_id, instance_id, conversation_id, message_id, status, prompt_tokens, first_event_id,
           created_at) VALUES ('${runId}', 'agt_x', 'inst_x', 'conv_x', 'msg_x', '${status}', 100, 1, 0)`,
      );
    }
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
