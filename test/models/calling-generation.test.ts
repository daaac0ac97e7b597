import { expect, test } from "bun:test";
import { resolve } from "node:path";
import type { ToolDescription } from "../../src/models/engine.ts";
import { watchBeginning } from "../../src/models/local/announced-call.ts";
import {
  createCall,
  createCallingGeneration,
  createOutputOrCall,
  isUnlikeJson,
} from "../../src/models/local/calling-generation.ts";
import type { Generation, GenerationOptions } from "../../src/models/local/generation.ts";
import { SAMPLING, seededRandom } from "../../src/models/local/sampling.ts";
import { SMOLLM2 } from "../../src/models/local/stepper.ts";
import { openTokenizer } from "../../src/models/local/tokenizer.ts";

const tokenizer = await openTokenizer(resolve(import.meta.dir, "../../models/smollm2-135m-instruct"));

const FUNCTIONS: ToolDescription[] = [
  {
    name: "write_file",
    description: "",
    inputSchema: {
      type: "object",
      properties: { name: { type: "string" }, text: { type: "string" } },
      required: ["name", "text"],
      additionalProperties: false,
    },
  },
  { name: "now", description: "", inputSchema: { type: "object", properties: {}, additionalProperties: false } },
];
const OPENING = "<tool_call>\n";
const CALL = '{"name": "write_file", "arguments": {"name": "a.md", "text": "- milk\\n- eggs"}}';
const CALLED = { name: "write_file", input: { name: "a.md", text: "- milk\n- eggs" } };

/** A model that writes these words if it may, and then ends. */
function writing(words: string, more: Partial<GenerationOptions> = {}): GenerationOptions {
  const tokens = tokenizer.encode(words);
  let at = 0;
  return {
    prompt: [0],
    slot: { index: 0, owner: "", tokens: [], busy: true, touchedRows: 0, promisedRows: 0, usedAt: 0 },
    stepper: {
      kind: "ffi",
      async step() {
        const logits = new Float32Array(SMOLLM2.vocabulary);
        logits[tokens[at++] ?? tokenizer.endOfTurn] = 100;
        return logits;
      },
      copyRows() {},
      discard() {},
    },
    tokenizer,
    maxTokens: 200,
    stop: [],
    sampling: { ...SAMPLING, temperature: 0, repetition: 1 },
    random: seededRandom(1),
    ...more,
  };
}

async function finish(generation: Generation) {
  const shown: string[] = [];
  for (;;) {
    const { text, reason, ...rest } = await generation.takeTurn();
    if (text !== "") shown.push(text);
    if (reason !== undefined) return { text: shown.join(""), shown, reason, ...rest };
  }
}

const answering = (words: string, opening = OPENING, more: Partial<GenerationOptions> = {}) =>
  finish(createCallingGeneration(writing(words, more), opening, FUNCTIONS));

test.each<[string, string]>([
  ["as its template says", `<tool_call>\n${CALL}\n</tool_call>`],
  ["without a line break", `<tool_call>${CALL}</tool_call>`],
  ["in another tag", `<tools>\n${CALL}\n</tools>`],
  ["in a code block", `\`\`\`json\n${CALL}\n\`\`\``],
  [
    "in a code block, on several lines",
    `\`\`\`json\n{\n  "name": "write_file",\n  "arguments": ${CALL.slice(36)}\n\`\`\``,
  ],
  ["with nothing around it", CALL],
  ["with a brace too many", `{${CALL}}`],
  ["with parameters for arguments", CALL.replace("arguments", "parameters")],
])("a call is taken, however it is written: %s", async (_, words) => {
  expect(await answering(words)).toEqual({ text: "", shown: [], reason: "tool_calls", call: CALLED });
});

test("for a model whose calls have no opening, JSON is a call", async () => {
  expect(await answering(CALL, "")).toMatchObject({ text: "", call: CALLED });
});

test("what is said before a call is shown as it comes", async () => {
  const { text, shown, call } = await answering(`I will write it down.\n<tool_call>\n${CALL}`);
  expect([text, call]).toEqual(["I will write it down.\n", CALLED]);
  expect(shown.length).toBeGreaterThan(4);
});

test.each([
  "Use `a < b`, or {a: 1}.",
  '{"name": "Ada", "age": 36}',
  '```json\n{"name": "Ada"}\n```',
  "<b>bold</b> and <tools> of a carpenter",
  '{"name": "write',
])("what is no call is shown whole: %s", async (words) => {
  expect(await answering(words)).toMatchObject({ text: words, reason: "stop" });
});

test("a call always fits the schema, whatever the model would rather write", async () => {
  const { reason, call } = await answering('<tool_call>\n{"name": "now", "arguments": {"zone": "Asia/Tokyo"}}');
  expect([reason, call]).toEqual(["tool_calls", { name: "now", input: {} }]);
  const { call: other } = await answering('<tool_call>\n{"name": "nowhere", "arguments": {}}');
  expect(other).toEqual({ name: "now", input: {} });
});

/** A call that writes this text, as JSON. */
const writes = (text: string) => `<tool_call>\n{"name": "write_file", "arguments": {"name": "a.md", "text": "${text}`;

test("a text that only repeats itself ends, and has once what it repeats", async () => {
  const stanza = 'Raindrops fall,\\nSoft and gentle,\\nA song of \\"rain\\".\\n';
  expect(await answering(writes(`Rain\\n${stanza.repeat(12)}`))).toMatchObject({
    reason: "tool_calls",
    call: { input: { text: 'Rain\nRaindrops fall,\nSoft and gentle,\nA song of "rain".' } },
  });
});

test.each([
  ["what comes twice", "Row, row, row your boat,\\nGently down the stream.\\n".repeat(2)],
  ["lines without words", `| --- | --- | --- | --- |\\n${"-".repeat(90)}`],
  ["short words", "ha ha ha ha ha ha ha"],
])("%s is no such text", async (_, text) => {
  const { call } = await answering(`${writes(text)}"}}`);
  expect(call?.input.text).toBe(JSON.parse(`"${text}"`));
});

test("nothing of a call that is cut is shown, and nothing is called", async () => {
  const cut = { maxTokens: 20 };
  expect(await answering(`Well. <tool_call>\n${CALL}`, OPENING, cut)).toEqual({
    text: "Well. ",
    shown: expect.any(Array),
    reason: "length",
    isCallCut: true,
  });
});

test("a request's stop strings end an answer before a call", async () => {
  expect(await answering(`Well. STOP <tool_call>${CALL}`, OPENING, { stop: ["STOP"] })).toMatchObject({
    text: "Well. ",
    reason: "stop",
  });
});

/** With the functions that it may come to without a call of its own. */
const beginning = (words: string, helping: string[] = [], more: Partial<GenerationOptions> = {}) =>
  finish(createCallingGeneration(writing(words, more), OPENING, FUNCTIONS, { announced: ["write_file"], helping }));

test.each([
  "To keep it, you can use the `write_file` function",
  "Sure! I can do that by calling **write_file**",
  "Let me use the tool write_file for",
])("what an answer begins by saying that it can call is called: %s", async (words) => {
  expect(await beginning(`${words}<tool_call>\n${CALL}`)).toEqual({
    ...{ text: "", shown: [], reason: "tool_calls", call: CALLED },
  });
});

test("whether it is named whole is known at the next character, or at the end", () => {
  const watch = watchBeginning({ announced: ["write_file", "write_file_all"], helping: [] });
  expect([watch.push("You can use write_file"), watch.wanted(), watch.wanted(true)]).toEqual([
    "",
    null,
    ["write_file"],
  ]);
  expect([watch.push("_all "), watch.wanted()]).toEqual(["", ["write_file_all"]]);
});

test.each(["I'm sorry, but I don't", "I don’t have", "I cannot", ""])(
  "where a function might help, it is called instead of a denial: %j",
  async (words) => {
    expect(await beginning(words, ["now"])).toEqual({
      ...{ text: "", shown: [], reason: "tool_calls", call: { name: "now", input: {} } },
    });
  },
);

test.each([
  "To keep it, write it down. You can use write_file for that.",
  "To sum up: use write_files, and rewrite_file.",
  "I don't know who that is. Ask somebody else.",
  "Sure, here is a list:\n- write_file\n- read_file",
  "```ts\nuse(write_file());\n```",
  "No.",
  "",
  `Let me see. ${"It is a long way to go, and ".repeat(20)}`,
])("any other beginning is shown whole: %j", async (words) => {
  expect(await beginning(words)).toMatchObject({ text: words, reason: "stop" });
});

test("a sentence that may announce a call is shown at its end, all others as they come", async () => {
  const { shown } = await beginning("To do that, go home. Then have a cup of tea.");
  expect(shown[0]).toStartWith("To do that, go home.");
  expect(shown.length).toBeGreaterThan(4);
  expect((await beginning("The sea is blue and wide.")).shown.length).toBeGreaterThan(3);
});

test("what was held back is shown before a call of the model's own, and where the length ends", async () => {
  expect(await beginning(`Let me see.<tool_call>\n${CALL}`)).toMatchObject({ text: "Let me see.", call: CALLED });
  expect(await beginning("You can have tea with milk", [], { maxTokens: 4 })).toMatchObject({
    text: "You can have tea",
    reason: "length",
  });
});

test("a model that must call writes a call, whatever it would rather say", async () => {
  const must = FUNCTIONS.filter(({ name }) => name === "now");
  const generation = createCall(writing("I have looked at the clock."), OPENING, must);
  expect(await finish(generation)).toEqual({
    text: "",
    shown: [],
    reason: "tool_calls",
    call: { name: "now", input: {} },
  });
});

const schema = {
  type: "object",
  properties: { done: { type: "boolean" }, note: { type: "string" } },
  required: ["done", "note"],
  additionalProperties: false,
};
const output = (words: string) => finish(createOutputOrCall(writing(words), OPENING, FUNCTIONS, schema));

test("an answer of a schema is the JSON, or a call on the way there", async () => {
  const json = '{"done": true, "note": "<tool_call> is a tag"}';
  expect(await output(json)).toMatchObject({ text: json, reason: "stop" });
  expect(await output(`<tool_call>\n${CALL}`)).toEqual({ text: "", shown: [], reason: "tool_calls", call: CALLED });
});

test("an opening that JSON may begin with does not tell a call from it", () => {
  expect(["<tool_call>\n", "", "[TOOL_CALLS]", '{"'].map(isUnlikeJson)).toEqual([true, false, false, false]);
});
