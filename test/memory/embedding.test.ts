import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { createLog } from "../../src/lib/log.ts";
import { createEmbedding } from "../../src/memory/embedding.ts";
import { createMemoryQueue } from "../../src/memory/queue.ts";
import { createSearchThread } from "../../src/memory/search-thread.ts";
import { openStore } from "../../src/storage/store.ts";
import { openLocalEngine } from "../models/local-setting.ts";

const notUsed = (): never => {
  throw new TypeError("there are no texts to embed");
};

test("a search goes on without the query's vector, and says why, where the embedding model's process hangs or cannot start", async () => {
  const lines: string[] = [];
  const log = pino({ level: "debug" }, { write: (line) => void lines.push(JSON.parse(line).msg) });
  for (const [command, reason] of [
    [[process.execPath, "-e", "process.on('message', () => {})"], "did not answer in time"],
    [["/nowhere/roost", "model-process"], "cannot be used"],
  ] as const) {
    const { engine, close } = openLocalEngine({ command: [...command] });
    const embedding = createEmbedding({
      store: { commitSoon: notUsed },
      log,
      queue: { vectors: { next: () => undefined, add() {}, done() {} } },
      thread: { ask: notUsed },
      embed: engine.embed,
      isChatting: () => false,
    });
    expect(await embedding.ofQuery("Where is the key?")).toEqual({
      vector: null,
      reason: expect.stringContaining(reason),
    });
    await embedding.stop();
    await close();
  }
  expect(lines).toEqual([
    "the embedding model was late for a search of a memory",
    "a memory was searched without the embedding model",
  ]);
});

test("a search that waits for less than a second has its answer without the query's vector by then", async () => {
  const embedding = createEmbedding({
    store: { commitSoon: notUsed },
    log: await createLog("silent", "json"),
    queue: { vectors: { next: () => undefined, add() {}, done() {} } },
    thread: { ask: notUsed },
    embed: (_, signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    isChatting: () => false,
  });
  expect((await embedding.ofQuery("Where is the key?", 1)).vector).toBeNull();
  await embedding.stop();
});

test("an index that is removed while a text of it is embedded holds up no other account's texts", async () => {
  const folder = mkdtempSync(join(tmpdir(), "roost-embedding-"));
  const store = openStore(folder);
  const queue = createMemoryQueue(store.db);
  const thread = createSearchThread(folder, await createLog("silent", "json"));
  const lines: string[] = [];
  const embedded = Promise.withResolvers<void>();
  for (const [at, agentId] of ["agt_a", "agt_b"].entries()) {
    await thread.ask({ type: "rebuild", agentId });
    const message = {
      text: agentId,
      messageId: `msg_${at}`,
      seq: 1,
      origin: "owner",
      runId: null,
      createdAt: 0,
    } as const;
    await thread.ask({ type: "messages", agentId, conversationId: "conv_a", messages: [message], upTo: 1 });
    store.transaction(() => queue.vectors.add(`acct_${at}`, agentId));
  }
  const embedding = createEmbedding({
    store,
    log: pino({ level: "warn" }, { write: (line) => void lines.push(JSON.parse(line).msg) }),
    queue,
    thread,
    async embed([text = ""]) {
      if (text === "agt_a") await thread.ask({ type: "remove", agentId: text });
      else embedded.resolve();
      return [new Float32Array(384).fill(0.05)];
    },
    isChatting: () => false,
  });
  embedding.run();
  await embedded.promise;
  await embedding.stop();
  expect(lines).toEqual([]);
  thread.close();
  store.close();
  rmSync(folder, { recursive: true });
});
