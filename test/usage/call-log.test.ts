import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "../../src/storage/store.ts";
import { createCallLog } from "../../src/usage/call-log.ts";
import { usageQueries } from "../../src/usage/queries.ts";

test("calls that could not be written are written once they can be, though their run commits nothing more", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-call-log-"));
  const store = openStore(dataDir);
  const { sqlite } = store;
  const failed = Promise.withResolvers<object>();
  const log = { error: (fields: object) => failed.resolve(fields) };
  const calls = createCallLog(store, usageQueries(store.db), log, 5);
  calls.run();
  const written = Promise.withResolvers<void>();
  const whose = { accountId: "acct_x", instanceId: "inst_x", agentId: "agt_x", runId: "run_x", model: "openai:x" };
  const took = { promptTokens: 900, cachedTokens: 0, completionTokens: 24, cost: null, estimated: true, ofHost: true };
  const call = { ...whose, ...took, purpose: "answer", outcome: "cancelled", createdAt: 0 } as const;
  calls.add({ call, reservationId: null, tally: { isCounted: false }, written: written.resolve });

  sqlite.run("ALTER TABLE model_calls RENAME TO elsewhere");
  calls.writeSoon("run_x");
  expect(await failed.promise).toMatchObject({ runId: "run_x" });
  sqlite.run("ALTER TABLE elsewhere RENAME TO model_calls");
  await written.promise;
  await calls.close();
  expect(sqlite.query("SELECT run_id, runs, prompt_tokens FROM model_calls").values()).toEqual([["run_x", 1, 900]]);
  store.close();
  rmSync(dataDir, { recursive: true });
});
