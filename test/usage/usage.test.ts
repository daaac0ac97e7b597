import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dayOf } from "../../src/lib/calendar.ts";
import { clockFromNoon, DAY, SECOND } from "../lib/hand-clock.ts";
import { type Conversation, startConversation } from "../messages/conversation.ts";
import { startRawServer } from "../support/raw-http-server.ts";

const folder = mkdtempSync(join(tmpdir(), "roost-prices-"));
const prices = join(folder, "prices.json");
writeFileSync(prices, JSON.stringify({ "openai:mock": { prompt: 2.5, cached: 0.25, completion: 10 } }));

const clock = clockFromNoon();
let it: Conversation;
beforeAll(async () => {
  it = await startConversation({ ROOST_MODEL_PRICES: prices, ROOST_MODELS: "spare,unpriced" }, undefined, undefined, {
    clock,
  });
});
afterAll(async () => {
  await it.stop();
  rmSync(folder, { recursive: true });
});
beforeEach(() => it.begin());
afterEach(() => it.person.ask("PATCH", "/v1/auth/me", { modelLimits: null }));

const usage = async (query: string) => (await it.person.ask("GET", `/v1/usage?${query}`)).body;
const ofAgent = async () =>
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects
  (await usage("by=agent&limit=100")).data.find(({ agentId }: any) => agentId === it.agent);
const limit = (modelLimits: object | null) => it.person.ask("PATCH", it.at(""), { modelLimits });
const runs = async () => (await it.person.ask("GET", it.at("/runs"))).body.data;

test("a message's call is in the usage at once, by agent, instance, model and day", async () => {
  await it.send("hi");
  const figures = { promptTokens: 12, cachedTokens: 0, completionTokens: 3, cost: "0.000060", currency: "USD" };
  expect(await ofAgent()).toEqual({ agentId: it.agent, runs: 1, modelCalls: 1, ...figures });
  expect((await usage("by=instance")).data).toMatchObject([{ instanceId: it.instance }]);
  expect((await usage("by=model")).data).toMatchObject([{ model: "openai:mock" }]);
  expect((await usage("by=day")).data).toMatchObject([{ day: dayOf(clock.now()) }]);
});

test("the run tells what it took, who answered, and what it cost", async () => {
  it.when("cached", {
    kind: "raw",
    chunks: [
      `data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\n`,
      `data: {"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":10,"prompt_tokens_details":{"cached_tokens":400}}}\n\ndata: [DONE]\n\n`,
    ],
  });
  await it.send("cached");
  // 600 × 2.50 + 400 × 0.25 + 10 × 10.00, for a million.
  const expected = { promptTokens: 1000, completionTokens: 10, totalTokens: 1010, cachedTokens: 400, cost: "0.001700" };
  expect(await runs()).toMatchObject([{ model: "openai:mock", usage: expected }]);
});

test("a response tells what came from a cache, and its run what it cost, of all its calls", async () => {
  const usage = { prompt_tokens: 1000, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 400 } };
  const lookFirst = { index: 0, id: "call_a", function: { name: "now", arguments: "{}" } };
  const last = `data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`;
  const chunk = (delta: object) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: "stop" }] })}\n\n`;
  it.when(
    "twice",
    { kind: "raw", chunks: [chunk({ tool_calls: [lookFirst] }), last] },
    { kind: "raw", chunks: [chunk({ content: "ok" }), last] },
  );
  const { body } = await it.person.ask("POST", "/v1/responses", { model: it.agent, input: "twice" });
  expect(body.usage).toMatchObject({ input_tokens: 2000, input_tokens_details: { cached_tokens: 800 } });
  const expected = { promptTokens: 2000, completionTokens: 20, totalTokens: 2020, cachedTokens: 800, cost: "0.003400" };
  expect(await runs()).toMatchObject([{ steps: 2, usage: expected }]);
});

test("a call that reports no usage is counted by an estimate, never as nothing", async () => {
  it.when("silent", {
    kind: "raw",
    chunks: [`data: {"choices":[{"index":0,"delta":{"content":"four words of text"},"finish_reason":"stop"}]}\n\n`],
  });
  const { body } = await it.send("silent");
  const { promptTokens, completionTokens } = await ofAgent();
  expect(completionTokens).toBe(5);
  expect(promptTokens).toBeGreaterThan(100);
  expect(body.usage).toEqual({ promptTokens, completionTokens, totalTokens: promptTokens + completionTokens });
});

test.each([9_007_199_254_740_991, 10_000_001])(
  "a server that reports %p tokens, more than a call can take, is estimated, and its run ends",
  async (many) => {
    const usage = { prompt_tokens: many, completion_tokens: many };
    it.when("greedy", { kind: "text", tokens: ["twelve bytes"], usage });
    const { status, body } = await it.send("greedy");
    expect({ status, completionTokens: body.usage.completionTokens }).toEqual({ status: 200, completionTokens: 3 });
    expect(await runs()).toMatchObject([{ status: "completed", usage: { completionTokens: 3 } }]);
    expect(await ofAgent()).toMatchObject({ runs: 1, modelCalls: 1, completionTokens: 3 });
  },
);

test("a try that failed counts as a call", async () => {
  it.when("twice", { kind: "status", status: 503 }, { kind: "text", tokens: ["ok"] });
  await it.send("twice");
  expect(await ofAgent()).toMatchObject({ runs: 1, modelCalls: 2, promptTokens: 1, completionTokens: 1 });
  it.when("never", { kind: "status", status: 400 });
  await it.send("never");
  expect(await ofAgent()).toMatchObject({ runs: 2, modelCalls: 3 });
});

test("an answer that breaks off or is cancelled counts with what was sent and shown", async () => {
  it.when("cut", { kind: "text", tokens: ["twelve bytes"], ending: "cut" });
  await it.send("cut");
  expect(await ofAgent()).toMatchObject({ modelCalls: 1, completionTokens: 3 });
  it.when("wait", { kind: "text", tokens: ["twelve bytes"], ending: "hang" });
  const runId = await it.queue("wait");
  await it.until("message.delta", runId);
  await it.cancel(runId);
  while ((await ofAgent()).modelCalls < 2) await Bun.sleep(5);
  expect(await ofAgent()).toMatchObject({ runs: 2, completionTokens: 6 });
});

test.each<[how: string, calls: number, end: (runId: string) => Promise<unknown>]>([
  ["is cancelled", 2, (runId) => it.cancel(runId)],
  ["is interrupted", 3, () => it.send("hi", { whileRunning: "interrupt" })],
])("a run that %s within a model call has taken that call too", async (_, calls, end) => {
  it.when(
    "look",
    { kind: "tools", calls: [{ name: "now", arguments: {} }] },
    { kind: "text", tokens: ["twelve bytes"], ending: "hang" },
  );
  const runId = await it.queue("look");
  await it.until("message.delta", runId);
  await end(runId);
  while ((await ofAgent()).modelCalls < calls) await Bun.sleep(5);
  const { promptTokens, completionTokens } = await ofAgent();
  const sum = { promptTokens: 0, completionTokens: 0 };
  for (const { usage } of await runs()) {
    sum.promptTokens += usage.promptTokens;
    sum.completionTokens += usage.completionTokens;
  }
  expect(sum).toEqual({ promptTokens, completionTokens });
});

test("without by, or with a day that is none, it is 400", async () => {
  for (const query of ["", "by=week", "by=day&from=yesterday", "by=day&from=2026-02-02&to=2026-02-01"]) {
    expect((await it.person.ask("GET", `/v1/usage?${query}`)).status).toBe(400);
  }
});

test("a limit that is used up refuses messages until the day ends, without calling the model", async () => {
  expect((await limit({ tokensPerDay: 15 })).body.modelLimits).toEqual({
    ...{ tokensPerDay: 15, tokensPerMonth: null, costPerDay: null, costPerMonth: null },
  });
  const before = it.mock.requests.length;
  const { status, headers, body } = await it.send("hi");
  expect([status, body.error.code]).toEqual([429, "budget_exceeded"]);
  const left = Math.ceil((DAY - (clock.now() % DAY)) / SECOND);
  expect(Math.abs(Number(headers.get("retry-after")) - left)).toBeLessThan(30);
  expect(it.mock.requests.length).toBe(before);
});

test("a call that might exceed the limit is not made: the run fails with the code, and a plain request is 429", async () => {
  // The answer alone would fit.
  await limit({ tokensPerMonth: 4_200 });
  const { status, headers, body } = await it.send("hi");
  expect([status, body.error.code]).toEqual([429, "budget_exceeded"]);
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await runs()).toMatchObject([{ status: "failed", error: { code: "budget_exceeded" } }]);
  const frames = await it.until("run.failed");
  expect(frames.at(-1)?.data.error.code).toBe("budget_exceeded");
});

test("limits hold at the agent, its instance and its account", async () => {
  for (const path of [it.at(""), `/v1/instances/${it.instance}`, "/v1/auth/me"]) {
    expect((await it.person.ask("PATCH", path, { modelLimits: { tokensPerDay: 0 } })).status).toBe(200);
    expect((await it.send("hi")).status).toBe(429);
    expect((await it.person.ask("PATCH", path, { modelLimits: { tokensPerDay: null } })).status).toBe(200);
    expect((await it.send("hi")).status).toBe(200);
  }
});

test("a limit of costs without a price is 403, and says so", async () => {
  await it.person.ask("PATCH", it.at(""), { model: "openai:unpriced", modelLimits: { costPerDay: "5.00" } });
  const { status, body } = await it.send("hi");
  expect([status, body.error.code]).toEqual([403, "forbidden"]);
  expect(body.error.message).toContain("price");
  await it.person.ask("PATCH", it.at(""), { model: "openai:mock" });
  expect((await it.send("hi")).status).toBe(200);
  await limit({ costPerDay: "0.000001" });
  expect((await it.send("hi")).body.error.code).toBe("budget_exceeded");
});

test("four fifths of a limit are told once in its period", async () => {
  it.when("much", { kind: "text", tokens: ["ok"], usage: { prompt_tokens: 79_000, completion_tokens: 999 } });
  it.when("little", { kind: "text", tokens: ["ok"], usage: { prompt_tokens: 1, completion_tokens: 0 } });
  await limit({ tokensPerDay: 100_000 });
  await it.send("much");
  await it.send("little");
  await it.send("little");
  const frames = await it.until("run.completed", (await runs())[0].runId);
  const warnings = frames.filter(({ event }) => event === "budget.warning");
  expect(warnings.map(({ data }) => data)).toMatchObject([
    {
      scope: "agent",
      limit: "tokensPerDay",
      used: 80_000,
      of: 100_000,
      resetsAt: expect.stringMatching(/T00:00:00.000Z$/),
    },
  ]);
});

test("a list of models is tried in order, and the run says who answered", async () => {
  const model = ["openai:spare", "openai:mock"];
  expect((await it.person.ask("PATCH", it.at(""), { model })).body.model).toEqual(model);
  it.when("hi", { kind: "status", status: 404 }, { kind: "text", tokens: ["from the second"] });
  expect((await it.send("hi")).body.message).toBe("from the second");
  expect(it.mock.requests.slice(-2).map(({ body }) => body.model)).toEqual(["spare", "mock"]);
  expect(await runs()).toMatchObject([{ model: "openai:mock" }]);
  it.when("bad", { kind: "status", status: 400 });
  expect((await it.send("bad")).status).toBe(502);
  expect(it.mock.requests.at(-1)?.body.model).toBe("spare");
});

const list = { model: ["openai:spare", "openai:mock"] };
const overloaded = (status: number) => ({ kind: "status", status, headers: { "Retry-After": "0" } }) as const;

test.each([408, 429, 500, 503])(
  "the next model of the list answers where one is refused with %d, each time it was tried",
  async (status) => {
    await it.person.ask("PATCH", it.at(""), list);
    const before = it.mock.requests.length;
    const refused = Array.from({ length: 3 }, () => overloaded(status));
    it.when("busy", ...refused, { kind: "text", tokens: ["from the second"] });
    expect((await it.send("busy")).body.message).toBe("from the second");
    const asked = it.mock.requests.slice(before).map(({ body }) => body.model);
    expect([asked.at(-2), asked.at(-1)]).toEqual(["spare", "mock"]);
    expect(await ofAgent()).toMatchObject({ runs: 1, modelCalls: asked.length });
  },
);

test("the next model of the list answers where the connection of one breaks before its answer, but not after", async () => {
  const answer = `data: {"choices":[{"index":0,"delta":{"content":"from the second"},"finish_reason":"stop"}]}\n\n`;
  let isShown = false;
  const shown = Promise.withResolvers<void>();
  const raw = await startRawServer((socket, _, text) => {
    if (text.includes('"model":"mock"')) socket.answer(`${answer}data: [DONE]\n\n`);
    else if (!isShown) socket.reset();
    else {
      socket.begin(answer.replace('"stop"', "null"));
      // A reset overtakes what has not been read.
      void shown.promise.then(() => socket.reset());
    }
  });
  const broken = await startConversation({ ROOST_OPENAI_BASE_URL: raw.url, ROOST_MODELS: "spare" });
  try {
    await broken.person.ask("PATCH", broken.at(""), list);
    expect((await broken.send("hi")).body.message).toBe("from the second");
    isShown = true;
    const runId = await broken.queue("hi");
    await broken.until("message.delta", runId);
    shown.resolve();
    await broken.until("run.failed", runId);
  } finally {
    await broken.stop();
    await raw.stop();
  }
});
