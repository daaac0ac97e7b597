import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import { TOOL_CASES } from "../../eval/tools/cases.ts";
import { choose } from "../../src/models/local/tools/choose.ts";
import { EXAMPLES } from "../../src/models/local/tools/examples.ts";
import { OFFERED, RIGHT_PERCENT } from "../../src/models/local/tools/offered.ts";
import { chat, collect, never, openLocalEngine, SYSTEM, textOf } from "./local-setting.ts";

const { engine, close } = openLocalEngine();
// The first message waits at most 20 s for the vectors of the tools' examples: not for loading the model as well.
beforeAll(() => engine.embed(["load"], never));
afterAll(close);

const tools = OFFERED.map((name) => ({ name, description: "", inputSchema: {} }));
/** The call that the model makes; null if it answers in words. */
async function callFor(say: string, more: Parameters<typeof chat>[1] = {}) {
  const events = await collect(engine.stream(chat(say, { tools, maxTokens: 4, ...more }), never));
  const call = events.find((event) => event.type === "tool_call")?.call;
  expect(events.at(-1)).toMatchObject({ type: "finish", reason: call ? "tool_calls" : expect.any(String) });
  expect(textOf(events) === "").toBe(call !== undefined);
  return call === undefined ? null : { name: call.name, input: JSON.parse(call.input) };
}

test.each([
  ["What day is it today?", "now", {}],
  ["What day is it tomorrow?", "now", {}],
  ["What time is it in Tokyo?", "now", { timeZone: "Asia/Tokyo" }],
  ["what time is it in Germany?", "now", { timeZone: "Europe/Berlin" }],
  ["What date is it in two weeks?", "now", {}],
  ["What day is it in 3 days?", "now", {}],
  ["What was the date last Friday?", "now", {}],
  ["When is next Friday?", "now", {}],
  ["What is 17 times 23?", "run_javascript", { code: "17 * 23" }],
  ["Please take 9 away from 45.", "run_javascript", { code: "45 - 9" }],
  ["Which files do you have?", "list_files", {}],
  ["Show me what is in plans/house.md", "read_file", { name: "plans/house.md" }],
])("a message that wants a tool gets its call, with what the message says: %s", async (say, name, input) => {
  expect(await callFor(say)).toEqual({ name, input });
});

test.each([
  "How was your day?",
  "It took me 3 hours to read 200 pages.",
  "Do you have time to talk?",
  "Which files does a lawyer keep?",
  "Should I write a diary?",
])("talk that sounds like it calls nothing: %s", async (say) => {
  expect(await callFor(say)).toBeNull();
});

test("a tool that is not offered is not called, and none is in a conversation of another language", async () => {
  expect(await callFor("What day is it today?", { tools: tools.filter(({ name }) => name !== "now") })).toBeNull();
  const messages = [
    { role: "system" as const, content: "Du bist Greta, eine Bäckerin. Du bist freundlich und sprichst nur Deutsch." },
    { role: "user" as const, content: "What day is it today?" },
  ];
  expect(await callFor("", { messages })).toBeNull();
});

test.each([
  ["Write 'Buy milk' into a file called milk.md.", "write_file", { name: "milk.md", text: "Buy milk\n" }],
  ["Hi! Remember that I prefer tea.", "remember", { text: "The user says: I prefer tea" }],
  ["What did I tell you about the plumber?", "search_memory", { query: "the plumber" }],
  ["Delete plans/house.md", "delete_file", { name: "plans/house.md" }],
])("what is to be done is done with the person's own words: %s", async (say, name, input) => {
  expect(await callFor(say)).toEqual({ name, input });
});

test("what is to be composed is written into the file, and only there", async () => {
  const call = await callFor("Write a short poem about the sea and save it as sea.md.", { maxTokens: 24 });
  expect(call).toEqual({
    name: "write_file",
    input: { name: "sea.md", text: expect.stringMatching(/\p{L}{3}.*\n$/su) },
  });
});

test("who wants what its owner has not allowed is told so, and nothing is made up", async () => {
  const offered = tools.filter(({ name }) => name !== "write_file");
  const asked = chat("Write 'Buy milk' into a file called milk.md.", { tools: offered, maxTokens: 4 });
  expect(textOf(await collect(engine.stream(asked, never)))).toBe(
    "I cannot do that: I am not allowed to use write_file.",
  );
});

test("an answer that is to be JSON calls nothing, because a result is told in words", async () => {
  const schema = { type: "object", properties: { answer: { type: "integer" } }, required: ["answer"] };
  const more = { output: { name: "answer", schema }, maxTokens: 64 };
  expect(await callFor("What is 17 times 23?", more)).toBeNull();
});

test("a file that the message only hints at is looked for among those that there are", async () => {
  const asked = "What is on my shopping list?";
  const first = await callFor(asked);
  expect(first).toEqual({ name: "list_files", input: {} });
  const step = (output: string) => [
    { role: "system" as const, content: SYSTEM },
    { role: "user" as const, content: asked },
    { role: "assistant" as const, content: "", toolCalls: [{ id: "a", name: "list_files", input: "{}" }] },
    { role: "tool" as const, toolCallId: "a", content: output },
  ];
  const there = step("SOUL.md (9 bytes)\nshopping-list.md (20 bytes)");
  expect(await callFor("", { messages: there })).toEqual({ name: "read_file", input: { name: "shopping-list.md" } });
  const missing = await collect(engine.stream(chat("", { tools, messages: step("SOUL.md (9 bytes)") }), never));
  expect(textOf(missing)).toBe("I do not know which file you mean. I have these files:\n- SOUL.md");
});

test("what need not be a file is answered in words where there is none of that name", async () => {
  const asked = "Read me the recipe for cake.";
  expect(await callFor(asked)).toEqual({ name: "list_files", input: {} });
  const messages = [
    { role: "system" as const, content: SYSTEM },
    { role: "user" as const, content: asked },
    { role: "assistant" as const, content: "", toolCalls: [{ id: "a", name: "list_files", input: "{}" }] },
    { role: "tool" as const, toolCallId: "a", content: "SOUL.md (9 bytes)" },
  ];
  const answer = await collect(engine.stream(chat("", { tools, messages, maxTokens: 8 }), never));
  expect(textOf(answer)).not.toContain("file");
  expect(textOf(answer)).not.toBe("");
});

test("whatever the model is inclined to, it writes one of the texts", async () => {
  const texts = fc.uniqueArray(fc.array(fc.nat(3), { minLength: 1, maxLength: 5 }), {
    minLength: 1,
    maxLength: 8,
    selector: String,
  });
  await fc.assert(
    fc.asyncProperty(texts, fc.infiniteStream(fc.float({ noNaN: true, min: -5, max: 5 })), async (bodies, inclined) => {
      // After the prompt, and ended by a token of its own: none is the beginning of another.
      const options = bodies.map((body) => ({ text: String(body), tokens: [9, ...body, 8] }));
      const slot = { index: 0, owner: "", tokens: [], busy: true, touchedRows: 0, promisedRows: 0, usedAt: 0 };
      const step = async () => Float32Array.from({ length: 10 }, () => inclined.next().value ?? 0);
      const steps = choose({ texts: options, slot, stepper: { step } });
      for (;;) {
        const { done, value } = await steps.next();
        if (done !== true) continue;
        expect(options.map(({ text }) => text)).toContain(value.text);
        expect(value.sureness).toBeGreaterThan(0);
        expect(value.sureness).toBeLessThanOrEqual(1);
        return;
      }
    }),
  );
});

test("only what is right more often than wrong is offered, as the report has measured it", async () => {
  const report = await Bun.file(join(import.meta.dir, "../../docs/eval-tools.md")).text();
  for (const [name, right] of Object.entries(RIGHT_PERCENT)) {
    expect(report).toMatch(new RegExp(`\\| \`${name}\` \\| \\d+ \\| ${right} % \\|`));
    expect(OFFERED.includes(name)).toBe(right > 50);
  }
});

test.each(["When do you close today?", "What are the opening hours today?", "What time does the meeting start today?"])(
  "the clock is not asked when something else begins or ends: %s",
  (question) => {
    const mayMean = (text: string) => EXAMPLES.now.mentions.every((pattern) => pattern.test(text));
    expect(mayMean(question)).toBe(false);
    expect(mayMean("What day is it today?") && mayMean("What time is it in 3 hours?")).toBe(true);
  },
);

test("no case is one of the examples that it is judged by", () => {
  const examples = Object.values(EXAMPLES).flatMap(({ wants, talk }) => [...wants.map(([say]) => say), ...talk]);
  for (const { say } of TOOL_CASES) expect(examples).not.toContain(say);
});

test("there are at least sixty cases, a third of which want no tool", () => {
  expect(TOOL_CASES.length).toBeGreaterThanOrEqual(60);
  expect(TOOL_CASES.filter(({ wanted }) => wanted === null).length).toBeGreaterThanOrEqual(TOOL_CASES.length / 3);
});
