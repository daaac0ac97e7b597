import { expect, test } from "bun:test";
import type { ModelMessage } from "../../src/models/engine.ts";
import { OFFERED } from "../../src/models/local/tools/offered.ts";
import { toolUseOf } from "../../src/models/local/tools/tool-use.ts";

const tools = OFFERED.map((name) => ({ name, description: "", inputSchema: {} }));
const GERMAN = "Wir haben nicht mehr viel im Haus. Der Kompost ist auch alle, und ich habe keine Zeit für den Markt.";
const asked = (...messages: ModelMessage[]) =>
  toolUseOf({ messages: [{ role: "system", content: "You are Ada." }, ...messages], tools })?.question;

test.each([
  ["Show me a.md", [["read_file", GERMAN]]],
  [`Save this in a.md: ${GERMAN}`, []],
  [`Write "${GERMAN}" into a.md`, []],
] as const)("who speaks English has tools for a file in another language: %s", (content, calls) => {
  const made = calls.flatMap(([name, output]): ModelMessage[] => [
    { role: "assistant", content: "", toolCalls: [{ id: "a", name, input: '{"name":"a.md"}' }] },
    { role: "tool", toolCallId: "a", content: output },
  ]);
  expect(asked({ role: "user", content }, ...made)).toBe(content);
  expect(asked({ role: "user", content }, ...made, { role: "user", content: "Rename a.md to b.md" })).toBeDefined();
});

test("who speaks another language has none", () => {
  expect(asked({ role: "user", content: GERMAN })).toBeUndefined();
});
