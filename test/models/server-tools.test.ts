import { expect, test } from "bun:test";
import type { ModelMessage, ToolDescription } from "../../src/models/engine.ts";
import { reachableFor } from "../../src/models/local/announced-call.ts";
import { mustCall } from "../../src/models/local/tools/must-call.ts";
import { toolsOfServers } from "../../src/models/local/tools/server-tools.ts";

const tool = (name: string, description = "", input = ""): ToolDescription => ({
  name,
  description,
  inputSchema: { type: "object", properties: input === "" ? {} : { [input]: { type: "string" } } },
});
const STOCK = tool("warehouse__stock", "How many pieces of an article there are.", "article");
const ORDER = tool("warehouse__order", "Orders pieces of an article from its supplier.", "article");
const ISSUE = tool("github__create_issue", "Create a new issue in a repository.", "repository");
const OFFERED = [tool("read_file", "Reads a file."), STOCK, ORDER, ISSUE];

const user = (content: string): ModelMessage => ({ role: "user", content });
const called = (name: string): ModelMessage[] => [
  { role: "assistant", content: "", toolCalls: [{ id: "one", name, input: "{}" }] },
  { role: "tool", toolCallId: "one", content: "12 pieces" },
];
const asked = (content: string, before: ModelMessage[] = [], after: ModelMessage[] = []) => {
  const request = { messages: [...before, user(content), ...after], tools: OFFERED };
  const { named, related } = toolsOfServers(request);
  const namesOf = (tools: readonly ToolDescription[] = []) => tools.map(({ name }) => name).join(" ");
  return {
    named: namesOf(named),
    related: namesOf(related),
    must: namesOf(mustCall(request)),
    ...reachableFor(request),
  };
};

const WAREHOUSE = "warehouse__stock warehouse__order";
const ALL = `${WAREHOUSE} github__create_issue`;

test.each([
  ["How many hammers are in the warehouse?", WAREHOUSE],
  ["Is the screwdriver in stock?", WAREHOUSE],
  ["Please order 20 saws.", WAREHOUSE],
  ["Create an issue about the broken door.", "github__create_issue"],
])("%j is about the tools whose server or name it names: one must be called", (message, names) => {
  expect(asked(message)).toMatchObject({ named: names, related: ALL, must: names });
});

test("what goes on from a call of a server's tool is about that server, too", () => {
  const before = [user("How many hammers are in the warehouse?"), ...called("warehouse__stock")];
  expect(asked("And saws?", before).must).toBe(WAREHOUSE);
  expect(asked("How many nails do we have?", before).must).toBe(WAREHOUSE);
  expect(asked("Tell me a joke.", before).must).toBe("");
  expect(asked("And saws?", [...before, user("Thank you!")]).must).toBe("");
  expect(asked("And saws?").must).toBe("");
});

test("a word of a description alone is a hint: a tool is called where the model would not help otherwise", () => {
  expect(asked("Which supplier has screws?")).toMatchObject({ named: "", related: ALL, must: "" });
  expect(asked("Which supplier has screws?").helping.join(" ")).toBe(ALL);
});

test.each([
  ["Tell me a joke.", ""],
  ["Create a haiku about the sea.", ""],
  ["When is my birthday?", ""],
  ["Show me how to list all of them, please.", ""],
  ["The warehouse is cold today.", ALL],
])("%j asks for no tool of a server", (message, related) => {
  expect(asked(message)).toMatchObject({ named: "", related, must: "" });
});

test("once a tool was called for the message, the model does as it likes", () => {
  const after = called("warehouse__stock");
  expect(asked("Order 20 saws.", [], after)).toMatchObject({ named: "", related: "", must: "", helping: [] });
  expect(asked("Order 20 saws.", [], after).announced).toEqual([
    "read_file",
    "warehouse__order",
    "github__create_issue",
  ]);
});

test("what is the host's own to do comes first", () => {
  const tools = [...OFFERED, tool("write_file")];
  const messages = [user("Write a file order.md that says hello.")];
  expect(mustCall({ messages, tools })?.map(({ name }) => name)).toEqual(["write_file"]);
});

test("who asks about tools, or names one, is answered in words", () => {
  for (const message of ["Which tools do you have?", "What can you do in the warehouse?"]) {
    expect(asked(message)).toMatchObject({ announced: [], helping: [] });
  }
  expect(asked("What does read_file do?").announced).not.toContain("read_file");
});
