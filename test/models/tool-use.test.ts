import { expect, test } from "bun:test";
import type { ModelMessage } from "../../src/models/engine.ts";
import type { Deed } from "../../src/models/local/tools/deed.ts";
import { deedIn } from "../../src/models/local/tools/deeds.ts";
import { nextOfDeed } from "../../src/models/local/tools/doing.ts";
import { OFFERED, type ToolName } from "../../src/models/local/tools/offered.ts";
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

test("a thing is checked off on the list that was named last", () => {
  const said = ["Add eggs to my camping list", "What is it for?", "Check off eggs"];
  const messages = said.map((content): ModelMessage => ({ role: "user", content }));
  const use = toolUseOf({ messages, tools });
  const lists = "camping-list.md (9 bytes)\ntodo.md (9 bytes)";
  const made = [{ name: "list_files", input: "{}", output: lists, isError: false }];
  const step = (listNamed = use?.listNamed) =>
    nextOfDeed(deedIn("Check off eggs") as Deed, {
      question: "",
      offered: [...OFFERED] as ToolName[],
      isTold: false,
      listNamed,
      made,
    });
  expect(step()).toEqual({ call: { name: "read_file", input: { name: "camping-list.md" } } });
  expect(toolUseOf({ messages: messages.slice(1), tools })?.listNamed).toBeUndefined();
  expect(step("my to-do list")).toEqual({ call: { name: "read_file", input: { name: "todo.md" } } });
});

test("who speaks another language has none", () => {
  expect(asked({ role: "user", content: GERMAN })).toBeUndefined();
});
