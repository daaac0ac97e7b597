import { expect, test } from "bun:test";
import type { Agent } from "../../src/agents/schema.ts";
import { createMemory, type MemoryParts } from "../../src/memory/memory.ts";

/** A memory whose searches end when they are told to; `begun` has whose they are, in order. */
function heldMemory() {
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const parts = {
    agents: { find: () => ({}) },
    instances: { find: (instanceId: string) => ({ accountId: instanceId }) },
    queue: { isKept: () => true },
    indexing: { catchUp: async () => {}, isBehind: () => false },
    embedding: { ofQuery: async () => ({ vector: null }) },
    workspaces: { refresh: () => {} },
    thread: {
      ask({ query }: { query: string }) {
        begun.push(query);
        const { promise, resolve } = Promise.withResolvers();
        ends.push(() => resolve({ found: [], pending: 0, total: 0, isBeingBuilt: false }));
        return promise;
      },
    },
  } as unknown as MemoryParts;
  return { memory: createMemory(parts), begun, ends };
}

const agentOf = (account: string) => ({ agentId: `agt_${account}`, instanceId: account }) as Agent;

test("an account searches twice at once; another's search goes before what waits of it, and too many are not begun", async () => {
  const { memory, begun, ends } = heldMemory();
  const search = (account: string) => memory.search(agentOf(account), account, 5);
  const many = Array.from({ length: 67 }, () => search("greedy"));
  // 64 wait, and the last is not searched.
  expect((await many.at(-1))?.degraded).toContain("too many searches of this account wait");
  const other = search("other");
  for (let at = 0; at < 67; at++) {
    while (ends.length <= at) await new Promise((resolve) => setImmediate(resolve));
    ends[at]?.();
  }
  expect([(await other).degraded, (await Promise.all(many)).length]).toEqual([null, 67]);
  expect([begun.indexOf("other"), begun.length]).toEqual([2, 67]);
});
