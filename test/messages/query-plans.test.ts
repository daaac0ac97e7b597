import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { createEventLog } from "../../src/messages/event-log.ts";
import { messageQueries } from "../../src/messages/message-table.ts";
import { openStore, type Store } from "../../src/storage/store.ts";
import { plansOf } from "../support/query-plans.ts";

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
    queries.unfinishedIn("i");
    queries.agentsWithUnfinished();
    queries.recent("a", 10);
    queries.text(7);
    queries.reply("a", "m");
    queries.page("a", "desc", 5, 10);
    events.read("a", 1, 10);
    events.lastEventId("a");
  });
  expect(plans.length).toBeGreaterThan(8);
  // Runs are found by their id or among the unfinished ones; a full scan is never made.
  expect(plans.filter((plan) => /^SCAN (?!.*unfinished_runs)|runs_by_agent/.test(plan))).toEqual([]);
});
