import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dayOf } from "../../src/lib/calendar.ts";
import { costOfTokens } from "../../src/limits/model-prices.ts";
import { addUsage, newUsage } from "../../src/messages/runs/progress.ts";
import { openStore } from "../../src/storage/store.ts";
import { createCallLog } from "../../src/usage/call-log.ts";
import { usageQueries } from "../../src/usage/queries.ts";

const MOST = Number.MAX_SAFE_INTEGER;
const AT = Date.UTC(2026, 10, 21, 12);
const DAY = dayOf(AT);
/** As in `runs.cost` and `model_calls.cost`, before the counts of a call were bounded. */
const WORST = 9_200_000_000_000_000_000;

test("calls of an earlier build that add up to more than a number holds break no account's totals", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-counts-"));
  const store = openStore(dataDir);
  try {
    const queries = usageQueries(store.db);
    const call = (accountId: string, tokens: number, cost: number) =>
      queries.insertCall({
        ...{ accountId, instanceId: "home", agentId: "librarian", runId: null, model: "openai:any", purpose: "answer" },
        ...{ ofHost: false, outcome: "answered", runs: 1, estimated: false, createdAt: AT },
        ...{ promptTokens: tokens, cachedTokens: tokens, completionTokens: tokens, cost },
      });
    // Their sum is more than SQLite's integers hold, in one commit and by the hundreds in several.
    const poison = () =>
      store.transaction(() => {
        for (let calls = 0; calls < 1_100; calls++) call("mallory", MOST, WORST);
        call("ada", 10, 5);
      });
    const day = { first: DAY, last: DAY, from: AT, until: AT + 1 };
    for (const times of [1, 2]) {
      poison();
      expect(queries.spent("mallory", "day", "", day).cost).toBeGreaterThanOrEqual(MOST);
      await createCallLog(store, queries, { error() {} }).total();
      expect(queries.notTotalled(1)).toEqual([]);
      expect(queries.sumOf("ada", "day", "", DAY, DAY)).toMatchObject({ promptTokens: 10 * times, cost: 5 * times });
      expect(queries.spent("ada", "day", "", day)).toEqual({ tokens: 20 * times, cost: 5 * times });
      const most = { runs: 1_100 * times, promptTokens: MOST, cachedTokens: MOST, completionTokens: MOST, cost: MOST };
      expect(queries.sumOf("mallory", "day", "", DAY, DAY)).toMatchObject(most);
    }
  } finally {
    store.close();
    rmSync(dataDir, { recursive: true });
  }
});

test("what a run took, and what that costs, never exceeds what its row can hold", () => {
  const tokens = { promptTokens: MOST, cachedTokens: MOST, completionTokens: MOST };
  const price = { prompt: 1e12, cached: 1e12, completion: 1e12 };
  expect(costOfTokens(price, tokens)).toBe(MOST);
  const usage = newUsage();
  for (let calls = 0; calls < 3; calls++) addUsage(usage, { ...tokens, cost: MOST });
  expect(usage).toEqual({ ...tokens, cost: MOST });
});
