import { afterAll, expect, test } from "bun:test";
import { type ModelMessage, messagesIn } from "../../src/models/engine.ts";
import { OFFERED } from "../../src/models/local/tools/offered.ts";
import { LOCAL_MODEL } from "../../src/models/local-models.ts";
import { chat, collect, never, openLocalEngine, SYSTEM, textOf } from "./local-setting.ts";

const { engine, close } = openLocalEngine();
afterAll(close);

/** The prompt tokens of an answer that were in the cache. */
async function cachedBy(work: () => Promise<unknown>): Promise<number> {
  const before = engine.stats().cachedTokens;
  await work();
  return engine.stats().cachedTokens - before;
}

test("an unguarded answer arrives token by token and ends with usage and a reason", async () => {
  const bare = openLocalEngine({ guarded: false });
  const events = await collect(bare.engine.stream(chat("What is a library?", { maxTokens: 24 }), never)).finally(
    bare.close,
  );
  const pieces = events.filter((event) => event.type === "text");
  expect(pieces.length).toBeGreaterThan(10);
  expect(textOf(events)).toMatch(/librar/i);
  expect(events.slice(-2)).toEqual([
    { type: "usage", promptTokens: expect.any(Number), completionTokens: 24, cachedTokens: expect.any(Number) },
    { type: "finish", reason: "length" },
  ]);
});

test("the model's own end of turn finishes an answer", async () => {
  const events = await collect(engine.stream(chat("Say hello.", { maxTokens: 200 }), never));
  expect(events.at(-1)).toEqual({ type: "finish", reason: "stop" });
  expect(textOf(events)).not.toContain("<|im_end|>");
});

test("a stop string ends the answer and is not shown", async () => {
  const request = chat("What is a library?", { maxTokens: 24 });
  // A prompt that runs in chunks is rounded differently from one in the cache, and may get another answer.
  await collect(engine.stream(request, never));
  const whole = textOf(await collect(engine.stream(request, never)));
  const stop = whole.slice(20, 33); // across several tokens
  const events = await collect(engine.stream({ ...request, stop: ["never said", stop] }, never));
  expect(textOf(events)).toBe(whole.slice(0, whole.indexOf(stop)));
  expect(events.at(-1)).toEqual({ type: "finish", reason: "stop" });
});

test("the next turn of a conversation finds the earlier turns in the cache", async () => {
  const messages: ModelMessage[] = [...messagesIn(chat("Name one famous novel.").messages)];
  const first = await collect(engine.stream(chat("", { messages, maxTokens: 16 }), never));
  const usage = first.find((event) => event.type === "usage");
  messages.push({ role: "assistant", content: textOf(first) }, { role: "user", content: "And another?" });
  const cached = await cachedBy(() => collect(engine.stream(chat("", { messages, maxTokens: 4 }), never)));
  expect(cached).toBeGreaterThanOrEqual(usage?.promptTokens ?? Number.NaN);
});

test("a new conversation shares another's system prompt within its instance, and does not take its slot", async () => {
  const one = chat("Which book should a child of six read?", { maxTokens: 4 });
  const two = chat("Do you lend out films?", { maxTokens: 4 });
  await collect(engine.stream(one, never));
  const shared = await cachedBy(() => collect(engine.stream(two, never)));
  const kept = await cachedBy(() => collect(engine.stream(one, never)));
  expect(shared).toBeGreaterThan(SYSTEM.split(" ").length);
  expect(kept).toBeGreaterThan(shared);
});

test("an equal prompt of another instance finds nothing in the cache", async () => {
  const request = chat("Which book is the longest?", { maxTokens: 4, instanceId: "inst_first" });
  await collect(engine.stream(request, never));
  expect(await cachedBy(() => collect(engine.stream(request, never)))).toBeGreaterThan(0);
  const other = { ...request, instanceId: "inst_second" };
  expect(await cachedBy(() => collect(engine.stream(other, never)))).toBe(0);
});

test("an endless prompt is refused before it is sent to the model process", async () => {
  const before = engine.stats().promptTokens;
  const answer = collect(engine.stream(chat("word ".repeat(20_000)), never));
  await expect(answer).rejects.toMatchObject({ kind: "context_overflow", overflow: { limitTokens: 2_048 } });
  expect(engine.stats()).toMatchObject({ promptTokens: before, queued: 0 });
});

test("a request that is aborted while it is tokenised leaves nothing behind", async () => {
  const abort = new AbortController();
  const answer = collect(engine.stream(chat("é ".repeat(30_000)), abort.signal)).catch((error) => error);
  await new Promise((resolve) => setImmediate(resolve)); // it has been sent
  expect(engine.stats().queued).toBe(1);
  abort.abort(new Error("the user left"));
  expect(await answer).toMatchObject({ message: "the user left" });
  expect(engine.stats()).toMatchObject({ active: 0, queued: 0 });
});

test("one account's long prompts are tokenised in turns: another's short question does not wait for them", async () => {
  let ended = 0;
  const long = Array.from({ length: 24 }, (_, at) =>
    collect(engine.stream(chat(`${at} ${"é ".repeat(30_000)}`, { accountId: "acct_busy" }), never)).catch((error) => {
      ended++;
      return error;
    }),
  );
  await collect(
    engine.stream(chat("What is a poem?", { maxTokens: 2, accountId: "acct_quiet", instanceId: "inst_quiet" }), never),
  );
  expect(ended).toBeLessThan(24);
  for (const error of await Promise.all(long)) expect(error).toMatchObject({ kind: "context_overflow" });
});

test("a short question is answered while a long answer is being written", async () => {
  const ends: string[] = [];
  const long = engine.stream(chat("Tell me about the sea.", { maxTokens: 200 }), never)[Symbol.asyncIterator]();
  await long.next();
  const rest = (async () => {
    while (!(await long.next()).done);
    ends.push("long");
  })();
  // It needs no vectors: while it waits for those, the long answer has the model to itself.
  const short = chat("Say yes or no: is a poem a text?", { maxTokens: 12, instanceId: "inst_b" });
  expect(textOf(await collect(engine.stream(short, never)))).not.toBe("");
  ends.push("short");
  await rest;
  expect(ends).toEqual(["short", "long"]);
});

test("an aborted request throws the signal's reason", async () => {
  const abort = new AbortController();
  const reason = new Error("the user left");
  const answer = (async () => {
    for await (const _ of engine.stream(chat("Tell me about the sea.", { maxTokens: 1_500 }), abort.signal)) {
      abort.abort(reason);
    }
  })();
  expect(await answer.catch((error) => error)).toBe(reason);
  expect(engine.stats()).toMatchObject({ active: 0, queued: 0 });
});

test("a prompt that leaves no room for an answer is refused with its length", async () => {
  const answer = collect(engine.stream(chat("word ".repeat(3_000)), never));
  await expect(answer).rejects.toMatchObject({ kind: "context_overflow", overflow: { limitTokens: 1_984 } });
  await answer.catch((error) => expect(error.overflow.promptTokens).toBeGreaterThan(3_000));
});

test("an unknown model is rejected with the name of the existing one", async () => {
  const answer = collect(engine.stream(chat("Hi", { model: "local:gpt-7" }), never));
  await expect(answer).rejects.toMatchObject({
    kind: "unknown_model",
    message: expect.stringContaining(LOCAL_MODEL),
  });
  expect(() => engine.abilities("local:gpt-7")).toThrow(LOCAL_MODEL);
});

test("the model has a context of 2,048 tokens and takes only the tools that it was measured with", () => {
  expect(engine.abilities(LOCAL_MODEL)).toEqual({ contextTokens: 2_048, tools: OFFERED, prompt: "short" });
});

test("vectors of similar sentences are close together", async () => {
  const texts = ["A cat sits on the mat.", "A feline rests on a rug.", "Stocks fell sharply today."];
  const [cat = [], feline = [], stocks = []] = (await engine.embed(texts, never)).map((vector) => [...vector]);
  const cosine = (a: number[], b: number[]) => a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);
  expect(cat).toHaveLength(384);
  expect(cosine(cat, cat)).toBeCloseTo(1, 5);
  expect(cosine(cat, feline)).toBeGreaterThan(0.5);
  expect(cosine(cat, stocks)).toBeLessThan(0.2);
});
