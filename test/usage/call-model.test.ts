import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import type { ModelEngine } from "../../src/models/engine.ts";
import { createLocalEngine } from "../../src/models/local.ts";
import { LOCAL_MODEL } from "../../src/models/local-models.ts";
import { createOpenAiEngine } from "../../src/models/openai.ts";
import type { ModelCall } from "../../src/runtime/model-call.ts";
import { openStore } from "../../src/storage/store.ts";
import { createBudgets } from "../../src/usage/budgets.ts";
import type { EndedCall } from "../../src/usage/call-log.ts";
import { createCallModel } from "../../src/usage/call-model.ts";
import { usageQueries } from "../../src/usage/queries.ts";
import { createReservations } from "../../src/usage/reservations.ts";

const dataDir = mkdtempSync(join(tmpdir(), "roost-calls-"));
const store = openStore(dataDir);
afterAll(() => {
  store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const written: EndedCall["call"][] = [];
const clock = systemClock;
const prices = new Map();

/** Calls this engine's model with a signal that is aborted already; returns what was written. */
async function callCancelled(engine: ModelEngine, model: string): Promise<EndedCall["call"][]> {
  written.length = 0;
  const reservations = createReservations({
    ...{ store, clock, prices, queries: usageQueries(store.db) },
    budgets: createBudgets(() => ({ tokens: 0, cost: 0 })),
    limitsFor: () => ({ limited: [], rootRunId: null }),
    isOwnServer: () => false,
    warn() {},
  });
  const callLog = { begin: () => () => {}, add: ({ call }: EndedCall) => void written.push(call), writeCutOff() {} };
  const callModel = createCallModel({ clock, prices, engineOf: () => engine, reservations, callLog, onModelCall() {} });
  const call: ModelCall = {
    ...{ accountId: "ada", instanceId: "home", agentId: "librarian", models: [model], purpose: "answer", trace: null },
    ...{ messages: [{ role: "user", content: "Hello" }], tools: [] },
  };
  const words = async () => {
    for await (const _ of callModel(call, AbortSignal.abort(new Error("cancelled"))));
  };
  expect(await words().catch((error: Error) => error.message)).toBe("cancelled");
  return written;
}

const NOTHING = { outcome: "cancelled", promptTokens: 0, cachedTokens: 0, completionTokens: 0 };
const quiet = { info() {}, warn() {} };

test("a call that is cancelled before it has reached its model took nothing, whichever engine it waits in", async () => {
  const local = createLocalEngine({ cacheDir: join(dataDir, "cache"), idleMs: 1_000, log: quiet });
  const server = createOpenAiEngine({ baseUrl: "http://127.0.0.1:1/v1" });
  expect(await callCancelled(server, "openai:any")).toMatchObject([NOTHING]);
  expect(await callCancelled(local, LOCAL_MODEL)).toMatchObject([NOTHING]);
  await local.close();
});
