import { expect, test } from "bun:test";
import { pino } from "pino";
import { createEmbedding } from "../../src/memory/embedding.ts";
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
