import { expect, test } from "bun:test";
import {
  type MessagePart,
  type ModelMessage,
  messagesIn,
  type ToolCall,
  type ToolDescription,
} from "../../src/models/engine.ts";
import { type HostedRun, NO_MESSAGES, TURNS_TOGETHER, withKept } from "../../src/runtime/hosted-run.ts";
import { messagesAsMade } from "../../src/runtime/named-call.ts";
import { messagesOf } from "../../src/runtime/prompt.ts";
import type { Turn } from "../../src/runtime/protocol.ts";

const call: ToolCall = { id: "call_1", name: "weather", input: '{"city":"Rome"}' };
const CALL_TOOL = { name: "call_tool", description: "Calls a tool.", inputSchema: {} };
const SYSTEM: ModelMessage = { role: "system", content: "You are Ada." };
const ASKED: ModelMessage = { role: "user", content: "And now?" };

const turns: Turn[] = [
  { role: "user", text: "Hello" },
  { role: "assistant", text: "Good day." },
  { role: "user", text: "How is the weather?" },
  { role: "assistant", text: "Fine.", steps: [{ text: "I look.", calls: [{ call, result: "sunny" }] }] },
  { role: "user", text: "Thanks" },
];
const each = turns.map(({ role, text, steps }): ModelMessage | null => (steps ? null : { role, content: text }));
const run = { input: { conversation: turns }, turnMessages: { ...NO_MESSAGES, each } } as unknown as HostedRun;

test("the turns that the host has kept come after the first message", () => {
  const messages = withKept([SYSTEM, ASKED], [{ from: 0, to: 5 }], run, []);
  expect(messages).toEqual([
    SYSTEM,
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Good day." },
    { role: "user", content: "How is the weather?" },
    { role: "assistant", content: "I look.", toolCalls: [call] },
    { role: "tool", toolCallId: "call_1", content: "sunny" },
    { role: "assistant", content: "Fine." },
    { role: "user", content: "Thanks" },
    ASKED,
  ]);
  for (const at of [1, 2, 3, 7]) expect(each.includes(messages[at] as ModelMessage)).toBe(true);
});

test("only the turns at these places are shown", () => {
  const places = [
    { from: 1, to: 2 },
    { from: 4, to: 5 },
  ];
  expect(withKept([SYSTEM, ASKED], places, run, [])).toEqual([SYSTEM, each[1], each[4], ASKED] as ModelMessage[]);
  expect(withKept([SYSTEM, ASKED], [], run, [])).toEqual([SYSTEM, ASKED]);
});

test("turns that are kept together are the same array in every request, where all of them are shown", () => {
  const said = Array.from({ length: 30 }, (_, at): ModelMessage => ({ role: "user", content: String(at) }));
  const together = [3, 11, 19].map((at) => (at === 11 ? null : said.slice(at, at + TURNS_TOGETHER)));
  const long = { input: {}, turnMessages: { each: said, together, first: 3 } } as unknown as HostedRun;
  const shown = (from: number, to: number) => withKept([SYSTEM, ASKED], [{ from, to }], long, []).slice(1, -1);
  expect(shown(0, 30)).toEqual([
    ...said.slice(0, 3),
    together[0],
    ...said.slice(11, 19),
    together[2],
    ...said.slice(27),
  ] as MessagePart[]);
  expect(shown(3, 27)[0]).toBe(together[0] as MessagePart);
  for (let from = 0; from < 30; from++) {
    for (let to = from + 1; to <= 30; to++) expect(messagesIn(shown(from, to))).toEqual(said.slice(from, to));
  }
});

test("calls of kept turns, too, are shown as a model makes them that calls tools by `call_tool`", () => {
  const messages = withKept([SYSTEM, ASKED], [{ from: 3, to: 4 }], run, [CALL_TOOL]);
  const input = '{"name":"weather","input":{"city":"Rome"}}';
  expect(messages[1]).toMatchObject({ toolCalls: [{ id: "call_1", name: "call_tool", input }] });
});

test("what lasts is the same object in later requests also where calls are shown as made by `call_tool`", () => {
  const part = messagesOf(turns[3] as Turn);
  const held = { input: {}, turnMessages: { ...NO_MESSAGES, each: [part] } } as unknown as HostedRun;
  const shown = (tools: ToolDescription[]) => withKept([SYSTEM, ASKED], [{ from: 0, to: 1 }], held, tools)[1];
  expect(shown([])).toBe(part);
  const made = shown([CALL_TOOL]) as ModelMessage[];
  expect(made).toEqual([...messagesAsMade(part, [CALL_TOOL])]);
  expect(made).not.toEqual(part);
  expect(shown([CALL_TOOL])).toBe(made);
  // Offered by its name, it is called by it.
  expect(shown([CALL_TOOL, { ...CALL_TOOL, name: "weather" }])).toEqual(part);
});
