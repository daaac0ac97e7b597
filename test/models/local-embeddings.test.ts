import { afterEach, expect, test } from "bun:test";
import { EMBED_MODEL } from "../../src/models/local/embedder.ts";
import { locateModelFiles } from "../../src/models/local/files.ts";
import { loadTransformers } from "../../src/models/local/transformers.ts";
import type { LocalEngineOptions } from "../../src/models/local.ts";
import { chat, collect, never, openLocalEngine } from "./local-setting.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

function open(options: Partial<LocalEngineOptions> = {}) {
  const opened = openLocalEngine(options);
  closing.push(opened.close);
  return opened.engine;
}

const PARAGRAPH = "The ferry to the island leaves the harbour at seven in the morning. ".repeat(12);
const paragraphs = (count: number) => Array.from({ length: count }, (_, at) => `${at}. ${PARAGRAPH}`);

test("vectors are computed by another process than answers, while one is being written", async () => {
  const engine = open();
  await engine.embed(["load"], never);
  const prompt = chat(`${PARAGRAPH.repeat(4)} What is this about?`, { maxTokens: 4 });
  await Promise.all([
    collect(engine.stream(prompt, never)),
    engine.embed(["When does the ferry leave?"], never, { whoWaits: "somebody" }),
  ]);
  const { pid, embeddingPid } = engine.stats();
  expect([pid, embeddingPid]).toEqual([expect.any(Number), expect.any(Number)]);
  expect(embeddingPid).not.toBe(pid);
});

test("a question goes before texts that wait, and those of several requests take turns", async () => {
  const engine = open();
  const order: string[] = [];
  const ends = (name: string) => () => void order.push(name);
  await Promise.all([
    engine.embed(paragraphs(12), never).then(ends("twelve")),
    engine.embed(paragraphs(3), never).then(ends("three")),
    engine.embed(["Where is the key?"], never, { whoWaits: "somebody" }).then(ends("question")),
  ]);
  expect(order).toEqual(["question", "three", "twelve"]);
});

test("what all answers wait for goes before every question, and is never refused for their number", async () => {
  const engine = open();
  const order: string[] = [];
  const ends = new AbortController();
  const questions = Array.from({ length: 513 }, (_, at) =>
    engine.embed([`Where is key ${at}?`], ends.signal, { whoWaits: "somebody" }).then(
      () => order.push("question"),
      () => undefined,
    ),
  );
  await engine.embed(["Keys"], never, { whoWaits: "everybody" });
  expect(order.length).toBeLessThan(2); // the one that was first
  ends.abort();
  await Promise.all(questions);
});

test("what is given up leaves the line, and what stands behind it has its turn", async () => {
  const engine = open();
  const given = new AbortController();
  const first = engine.embed(paragraphs(50), given.signal);
  const second = engine.embed(["The key is under the mat."], never);
  given.abort(new Error("nobody waits for it"));
  await expect(first).rejects.toThrow("nobody waits for it");
  expect(await second).toHaveLength(1);
});

test("more texts than can wait are refused", async () => {
  const engine = open();
  const ends = new AbortController();
  const all = Array.from({ length: 514 }, () => engine.embed(["one"], ends.signal).catch((error) => error));
  expect(await all.at(-1)).toMatchObject({ name: "ModelError", kind: "unavailable" });
  ends.abort();
  await Promise.all(all);
});

test("the embedding model's process starts with the first answer, whose words mostly wait for vectors", async () => {
  for (const guarded of [true, false]) {
    const engine = open({ guarded });
    await collect(engine.stream(chat("Hello!", { maxTokens: 4 }), never));
    expect(engine.stats().embeddingPid !== undefined).toBe(guarded);
  }
});

test("texts survive a crash of the embedding model's process, and answers do not notice it", async () => {
  const engine = open();
  await engine.embed(["load"], never);
  const { embeddingPid } = engine.stats();
  const vectors = engine.embed(paragraphs(20), never);
  process.kill(embeddingPid ?? 0, "SIGKILL");
  expect(await vectors).toHaveLength(20);
  expect(engine.stats().embeddingPid).not.toBe(embeddingPid);
  expect(engine.stats().starts).toBe(0);
});

test("vectors are those of transformers.js, also of a text longer than the model reads", async () => {
  const { AutoModel, AutoTokenizer, env, mean_pooling } = await loadTransformers();
  env.localModelPath = `${(await locateModelFiles("/not-used-from-source")).modelsFolder}/`;
  const tokenizer = await AutoTokenizer.from_pretrained(EMBED_MODEL);
  const model = await AutoModel.from_pretrained(EMBED_MODEL, { dtype: "q8", device: "cpu" });
  const engine = open();
  for (const text of ["", "  Été 日本 🎉, it's 12.5 dollars!", PARAGRAPH, PARAGRAPH.repeat(4)]) {
    const inputs = tokenizer(text, { truncation: true, max_length: 256 });
    const { last_hidden_state: states } = await model(inputs);
    const expected: number[] = mean_pooling(states, inputs.attention_mask).normalize().tolist()[0];
    const [vector] = await engine.embed([text], never);
    expect(vector?.reduce((sum, value, at) => sum + value * (expected[at] ?? 0), 0)).toBeCloseTo(1, 5);
  }
});
