import { expect, test } from "bun:test";
import type { ModelMessage } from "../../src/models/engine.ts";
import { mustCall } from "../../src/models/local/tools/must-call.ts";

const OFFERED = ["list_files", "read_file", "write_file", "edit_file", "search_memory", "remember", "web_fetch"];
const described = (name: string, inputSchema: Record<string, unknown> = {}) => ({ name, description: "", inputSchema });

/** Before the message, another one was answered with a call. */
const earlier: ModelMessage[] = [
  { role: "system", content: "You are Ada." },
  { role: "user", content: "Remember that my cat is called Tom." },
  ...called("remember"),
  { role: "assistant", content: "I have noted it." },
];

/** A name with a mark of exclamation is of a call that fails, with what follows. */
function called(...names: string[]): ModelMessage[] {
  return names.flatMap((marked, at): ModelMessage[] => {
    const name = marked.replace(/!.*/, "");
    const [, failure] = marked.split("!");
    const result = { content: failure || "Done.", ...(failure === undefined ? {} : { isError: true as const }) };
    return [
      { role: "assistant", content: "", toolCalls: [{ id: `${name}${at}`, name, input: "{}" }] },
      { role: "tool", toolCallId: `${name}${at}`, ...result },
    ];
  });
}

const must = (content: string, made: string[] = [], tools = OFFERED.map((name) => described(name))) =>
  mustCall({ messages: [...earlier, { role: "user", content }, ...called(...made)], tools });
const asked = (content: string, made: string[] = [], offered = OFFERED) =>
  must(
    content,
    made,
    offered.map((name) => described(name)),
  )?.map(({ name }) => name);

test.each([
  ["Remember that my sister lives in Oslo.", ["remember"]],
  ["Write a file plan.md that says hello.", ["write_file"]],
  ["Write a poem about the sea and save it as sea.md.", ["write_file"]],
  ["Add apples to my shopping list.", ["list_files", "read_file"]],
  ["Change milk to cream on my list.", ["list_files", "read_file"]],
  ["Rename my list.", ["list_files", "read_file"]],
  ["Read me groceries.md.", ["read_file", "list_files"]],
  ["Which files do you have?", ["list_files"]],
  ["What did I tell you about Oslo?", ["search_memory"]],
  ["Could you please summarize https://example.com/news?", ["web_fetch"]],
  ["What does http://wiki.lan/page say about owls?", ["web_fetch"]],
])("for %j one of %j must be called", (message, names) => {
  expect(asked(message)).toEqual(names);
});

test.each([
  "Hello!",
  "What is the capital of Peru?",
  "Write a poem about the sea.",
  "How do I add apples to a pie?",
  "Delete groceries.md.",
  "Forget everything.",
  "Write a mail to Ann with this link: https://example.com",
])("for %j the model may do as it likes", (message) => {
  expect(asked(message)).toBeUndefined();
});

test("once a tool has done it, or too many have been called, the model may answer", () => {
  const add = "Add apples to my list.";
  expect(asked(add, ["read_file"])).toEqual(["write_file", "edit_file", "list_files"]);
  expect(asked(add, ["list_files", "read_file"])).toEqual(["write_file", "edit_file"]);
  expect(asked(add, ["read_file", "edit_file"])).toBeUndefined();
  expect(asked(add, ["ask_user", "ask_user", "ask_user", "ask_user"])).toBeUndefined();
});

test("what has failed is not done", () => {
  expect(asked("Add apples to my list.", ["read_file", "edit_file!"])).toEqual([
    "write_file",
    "edit_file",
    "list_files",
  ]);
  expect(asked("Remember that I like tea.", ["remember!"])).toEqual(["remember"]);
  // Nor is it tried again and again.
  expect(asked("Remember that I like tea.", ["remember!", "remember!"])).toBeUndefined();
  expect(asked("Read me rain.md.", ["read_file!file not found"])).toBeUndefined();
});

test("whoever has denied a call is not asked again", () => {
  expect(asked("Remember that I like tea.", ["remember!This call was denied."])).toBeUndefined();
});

test("what need not be given is not the model's to make up, unless the message names it", () => {
  const text = { type: "string" };
  const tools = [
    described("list_files", { type: "object", properties: { folder: text } }),
    described("read_file", { type: "object", properties: { name: text, fromLine: text }, required: ["name"] }),
  ];
  const inputs = (message: string) =>
    must(message, [], tools)?.map(({ inputSchema: { properties } }) => Object.keys(properties as object));
  expect(inputs("Which files do you have?")).toEqual([[]]);
  expect(inputs("Which files are in the folder recipes?")).toEqual([["folder"]]);
  expect(inputs("Read me groceries.md.")).toEqual([["name"], []]);
});

test("once the files are listed, what a person calls a file is one of theirs", () => {
  const properties = { name: { type: "string" } };
  const tools = [described("list_files"), described("read_file", { type: "object", properties, required: ["name"] })];
  const choice = (message: string, listed: string) => {
    const messages = [...earlier, { role: "user" as const, content: message }, ...called("list_files")];
    const [result] = messages.splice(-1);
    const read = mustCall({ messages: [...messages, { ...result, content: listed } as ModelMessage], tools })?.find(
      ({ name }) => name === "read_file",
    );
    return (read?.inputSchema.properties as { name: unknown } | undefined)?.name;
  };
  const files = ["AGENTS.md", "USER.md", "groceries.md", "memory/2026-11-28.md", "plans/kitchen.md"];
  const list = files.map((name) => `${name} (20 bytes)`).join("\n");
  expect(choice("What is on my list?", list)).toEqual({ enum: ["groceries.md", "plans/kitchen.md"] });
  expect(choice("Read me my kitchen notes.", list)).toEqual({ enum: ["plans/kitchen.md"] });
  expect(choice("Read me USER.md.", list)).toEqual({ enum: ["USER.md"] });
  expect(choice("What is on my list?", "AGENTS.md (20 bytes)")).toEqual({ type: "string" });
});

test("a tool that is not offered is not demanded, nor any where the one that does it is not", () => {
  expect(asked("Add apples to my list.", [], ["read_file", "write_file"])).toEqual(["read_file"]);
  expect(asked("Add apples to my list.", [], ["read_file", "list_files"])).toBeUndefined();
  expect(asked("Remember that I like tea.", [], ["read_file"])).toBeUndefined();
});
