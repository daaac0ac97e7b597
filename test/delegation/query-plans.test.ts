import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { delegationQueries } from "../../src/delegation/queries.ts";
import { conversationQueries } from "../../src/messages/conversation-queries.ts";
import { openStore } from "../../src/storage/store.ts";
import { plansOf } from "../support/query-plans.ts";

test("no query about runs that wait for others reads a whole table, however many there have been", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-plans-"));
  const store = openStore(dataDir);
  try {
    const plans = plansOf(store, () => {
      const queries = delegationQueries(store.db);
      queries.find("r");
      queries.close("r");
      queries.openOf("r");
      queries.ofWait("w");
      queries.due(1, 10);
      queries.countOfParent("r", 10);
      queries.countOfRoot("r", 10);
      queries.countOpenOf("a", 10);
      queries.agentsNamed("i", "n", 2);
      queries.namesBeside("i", "a", 2);
      const conversations = conversationQueries(store.db);
      conversations.answering("a", "c");
      conversations.oldestAtRest("a", "agent");
    });
    expect(plans.length).toBeGreaterThan(11);
    expect(plans.filter((plan) => plan.startsWith("SCAN"))).toEqual([]);
    for (const index of ["open_delegations_by_expiry", "open_delegations_by_account", "conversations_of_agents"]) {
      expect(plans.some((plan) => plan.includes(index))).toBe(true);
    }
  } finally {
    store.close();
    rmSync(dataDir, { recursive: true });
  }
});
