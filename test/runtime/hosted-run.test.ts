import { expect, test } from "bun:test";
import type { ModelMessage, ToolCall } from "../../src/models/engine.ts";
import { type HostedRun, withKept } from "../../src/runtime/hosted-run.ts";
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
const plain = turns.map(({ role, text, steps }): ModelMessage | null => (steps ? null : { role, content: text }));
const run = { input: { conversation: turns }, turnMessages: plain } as unknown as HostedRun;

test("the turns that the host has kept come after the first message; those that last are told apart", () => {
  const { messages, lasting } = withKept([SYSTEM, ASKED], [0, 1, 2, 3, 4], run, []);
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
  expect(lasting).toEqual([
    { from: 1, to: 4 },
    { from: 7, to: 8 },
  ]);
  for (const { from, to } of lasting)
    for (let at = from; at < to; at++) expect(plain).toContain(messages[at] as ModelMessage);
});

test("only the turns at these places are shown", () => {
  const { messages, lasting } = withKept([SYSTEM, ASKED], [1, 4], run, []);
  expect(messages).toEqual([SYSTEM, plain[1] as ModelMessage, plain[4] as ModelMessage, ASKED]);
  expect(lasting).toEqual([{ from: 1, to: 3 }]);
  expect(withKept([SYSTEM, ASKED], [], run, [])).toEqual({ messages: [SYSTEM, ASKED], lasting: [] });
});

test("calls of kept turns, too, are shown as a model makes them that calls tools by `call_tool`", () => {
  const { messages } = withKept([SYSTEM, ASKED], [3], run, [CALL_TOOL]);
  const input = '{"name":"weather","input":{"city":"Rome"}}';
  expect(messages[1]).toMatchObject({ toolCalls: [{ id: "call_1", name: "call_tool", input }] });
});
