import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { z } from "zod";
import type { PromptContext } from "../../src/messages/context.ts";
import { tokensOf } from "../../src/runtime/tokens.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { type Conversation, startConversation } from "./conversation.ts";
import { longTalk, writeMessages } from "./long-conversation.ts";

const LOOK: Tool = {
  name: "look",
  description: "Looks at something.",
  input: z.object({ at: z.string() }),
  changes: "nothing",
  deadlineMs: 5_000,
  untrustedOutput: false,
  run: async () => "It is blue.",
};

let it: Conversation;
beforeAll(async () => {
  it = await startConversation({ ROOST_MODELS: "unlisted" }, undefined, [LOOK], {
    models: [
      { id: "mock", max_model_len: 8_192 },
      { id: "other", max_model_len: "many" },
    ],
  });
});
afterAll(() => it.stop());
beforeEach(() => it.begin());

/** A message as a server is sent it. */
interface Sent {
  role: string;
  content: string | null;
  tool_calls?: { id: string; function: { name: string; arguments: string } }[];
}

const context = async (query = ""): Promise<PromptContext> =>
  (await it.person.ask("GET", it.at(`/context${query}`))).body;
const kindsIn = ({ pieces }: PromptContext): string[] => [...new Set(pieces.map(({ kind }) => kind))];

test("the context lists what the next prompt holds, in its order, and adds up", async () => {
  await it.send("what is new?");
  const body = await context();
  expect(body).toMatchObject({ model: "openai:mock", contextTokens: 8_192, dropped: 0 });
  expect(kindsIn(body)).toEqual(["file", "message", "tool"]);
  expect(body.pieces.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(body.totalTokens);
  // Up to the message itself, it is the prompt that the model then gets.
  await it.send("and now?");
  const messages: Sent[] = it.mock.requests.at(-1)?.body.messages ?? [];
  const texts = (wanted: string) => body.pieces.filter(({ kind }) => kind === wanted).map(({ text }) => text);
  expect(messages[0]?.content).toBe(texts("file").join("\n\n"));
  expect(messages.slice(1, -1).map(({ content }) => content)).toEqual(texts("message"));
});

test("the size of a model's context is the server's; without one, 32,768 tokens are assumed", async () => {
  expect((await context()).contextTokens).toBe(8_192);
  await it.person.ask("PATCH", it.at(""), { model: "openai:unlisted" });
  expect((await context()).contextTokens).toBe(32_768);
});

test("a later prompt shows the tools that were called for an answer, and what they returned", async () => {
  it.when(
    "what colour?",
    { kind: "tools", calls: [{ name: "look", arguments: { at: "the door" } }], text: "Let me look." },
    { kind: "text", tokens: [" It is", " blue."] },
  );
  await it.send("what colour?");
  await it.send("are you sure?");
  const messages: Sent[] = it.mock.requests.at(-1)?.body.messages ?? [];
  expect(messages.slice(1).map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
  expect(messages[2]).toMatchObject({ content: "Let me look." });
  expect(messages[2]?.tool_calls?.[0]?.function).toEqual({ name: "look", arguments: '{"at":"the door"}' });
  expect(messages[3]).toMatchObject({ content: "It is blue.", tool_call_id: messages[2]?.tool_calls?.[0]?.id });
  expect(messages[4]?.content).toBe("It is blue.");
  expect((await context()).pieces.some(({ text }: { text: string }) => text.includes("(called look"))).toBe(true);
});

test("calls of several answers have ids of their own in a later prompt, also if a server numbers each answer's anew", async () => {
  const look = (at: string) => ({ id: "call_0", name: "look", arguments: { at } });
  it.when(
    "which rooms?",
    { kind: "tools", calls: [look("the kitchen")] },
    { kind: "tools", calls: [look("the hall")] },
    { kind: "text", tokens: ["Two."] },
  );
  await it.send("which rooms?");
  await it.send("are you sure?");
  const messages: Sent[] = it.mock.requests.at(-1)?.body.messages ?? [];
  const calls = messages.flatMap(({ tool_calls = [] }) => tool_calls).slice(-2);
  expect(calls.map(({ function: { arguments: input } }) => input)).toEqual([
    '{"at":"the kitchen"}',
    '{"at":"the hall"}',
  ]);
  expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
});

test("a summary is a piece, and what is left out is counted and told", async () => {
  it.whenSummarising(() => ({ kind: "text", tokens: ["They talked of the garden."] }));
  writeMessages(it.server, it.agent, longTalk(120));
  const before = await context();
  expect(before.dropped).toBeGreaterThan(0);
  expect(before.pieces.find(({ name }) => name === "left out")?.text).toContain(`${before.dropped} old`);
  await it.send("one");
  const after = await context();
  expect(after.dropped).toBe(0);
  expect(after.pieces.find(({ kind }) => kind === "summary")?.text).toContain("the garden");
  expect(after.totalTokens).toBeLessThan(after.contextTokens);
});

test("values of secrets are hidden, and another account's agent and conversation are not found", async () => {
  const key = { key: "TOKEN", value: "sk-very-secret-4711" };
  await it.person.ask("POST", `/v1/instances/${it.instance}/secrets`, key);
  await it.send("my token is sk-very-secret-4711");
  const body = await context();
  expect(JSON.stringify(body)).not.toContain("very-secret");
  expect(JSON.stringify(body)).toContain("[secret TOKEN]");
  const stranger = await it.server.signUp();
  expect((await stranger.ask("GET", it.at("/context"))).status).toBe(404);
  expect(
    (await it.person.ask("GET", it.at("/context?conversationId=conv_0190f5e2c4a87b3d8e1f6a2b4c5d7e90"))).status,
  ).toBe(404);
});

test("the estimate counts too many tokens rather than too few", () => {
  for (const [text, least] of [
    ["The quick brown fox jumps over the lazy dog.", 10],
    ["这是一个关于花园的故事", 11],
    ["これは庭についての話です", 12],
    ["Привет, как дела?", 8],
  ] as const) {
    expect(tokensOf(text)).toBeGreaterThanOrEqual(least);
  }
});
