import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Agent } from "../../src/agents/schema.ts";
import { createLog, type Log } from "../../src/lib/log.ts";
import { createIndexing } from "../../src/memory/indexing.ts";
import { createMemoryQueue } from "../../src/memory/queue.ts";
import type { Ask, FileText } from "../../src/memory/search/worker.ts";
import { createSearchThread, IndexTroubleError } from "../../src/memory/search-thread.ts";
import type { Sources } from "../../src/memory/sources.ts";
import { openStore } from "../../src/storage/store.ts";

const folder = mkdtempSync(join(tmpdir(), "roost-indexing-"));
const silent = await createLog("silent", "json");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const fileOf = (name: string): FileText => ({
  ...{ name, isNotes: false, runId: null, conversationId: null, updatedAt: 0, marks: [], origin: "owner" },
  bytes: Buffer.from(`A heron in ${name}.`),
});

/** Agents of one account, each with an index. `before` is called before each question to the indexes' thread. */
async function start(before: (ask: Ask) => void, read: (name: string) => FileText = fileOf) {
  const data = mkdtempSync(join(folder, "data-"));
  const store = openStore(data);
  const queue = createMemoryQueue(store.db);
  const thread = createSearchThread(join(data, "memory"), silent);
  const logged: string[] = [];
  for (const agentId of ["agt_a", "agt_b"]) await thread.ask({ type: "rebuild", agentId });
  const indexing = createIndexing(
    {
      ...{ store, queue },
      log: { error: (_: object, text: string) => logged.push(text) } as unknown as Log,
      sources: { file: (_: Agent, name: string) => read(name) } as unknown as Sources,
      thread: {
        async ask(ask) {
          before(ask);
          return thread.ask(ask);
        },
      },
      agents: { find: (agentId) => ({ agentId }) as Agent },
      bound: { grew: async () => {} },
    },
    20,
  );
  indexing.run();
  return {
    ...{ indexing, logged },
    write: (agentId: string, source: string) =>
      store.transaction(() => queue.add({ accountId: "acct_a", kind: "file", agentId, source })),
    async files(agentId: string) {
      const { found } = await thread.ask({ type: "search", agentId, query: "heron", vector: null, limit: 9 });
      return found.map(({ file }) => file).toSorted();
    },
    async stop() {
      await indexing.stop();
      thread.close();
      store.close();
    },
  };
}

test("a text is kept for as long as an index is in trouble, which is logged once, and others go on meanwhile", async () => {
  const taken: string[] = [];
  let isBehind = false;
  let tries = 0;
  const it = await start((ask) => {
    if (ask.type !== "file") return;
    if (ask.agentId === "agt_a" && ++tries <= 5) {
      isBehind = it.indexing.isBehind("agt_a") && !it.indexing.isBehind("agt_b");
      throw new IndexTroubleError("the disk is full");
    }
    taken.push(ask.file.name);
  });
  it.write("agt_a", "a.md");
  it.write("agt_b", "b.md");
  await it.indexing.settled();
  expect(taken).toEqual(["b.md", "a.md"]);
  expect(await it.files("agt_a")).toEqual(["a.md"]);
  expect(it.logged).toHaveLength(1);
  expect([isBehind, it.indexing.isBehind("agt_a")]).toEqual([true, false]);
  await it.stop();
});

test("a text that is itself the reason why it cannot be taken in is given up, and the others are found", async () => {
  const it = await start(
    () => {},
    (name) => {
      if (name === "bad.md") throw new TypeError("this text is no text");
      return fileOf(name);
    },
  );
  for (const name of ["bad.md", "good.md"]) it.write("agt_a", name);
  await it.indexing.settled();
  expect(await it.files("agt_a")).toEqual(["good.md"]);
  expect(it.indexing.isBehind("agt_a")).toBe(false);
  await it.stop();
});
