import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { tokensOf } from "../../src/runtime/tokens.ts";
import type { MockAnswer } from "../support/mock-model-server.ts";
import { type Conversation, isSummary, kindsOf, startConversation } from "./conversation.ts";
import { defaultOf, longTalk, writeMessages } from "./long-conversation.ts";

const SMALL = 2_048;
const LARGE = 32_768;
const MODELS = [
  { id: "mock", max_model_len: LARGE },
  { id: "small", context_length: SMALL },
  { id: "medium", meta: { n_ctx: 8_192 } },
  { id: "huge", max_model_len: 262_144 },
];
const FACT = /Fact \d+: [^\n]*?\./g;

let it: Conversation;
beforeAll(async () => {
  it = await startConversation({ ROOST_MODELS: "small, medium, huge" }, undefined, [], { models: MODELS });
});
afterAll(() => it.stop());
beforeEach(() => it.begin());
afterEach(() => it.whenSummarising(keepingFacts));

/** What of a request a server is told of the conversation. */
interface Prompt {
  messages: { content: string | null }[];
}

const text = (said: string): MockAnswer => ({ kind: "text", tokens: [said] });
const keepingFacts = (material: string): MockAnswer =>
  text(`They talked of the garden. ${[...new Set(material.match(FACT))].join(" ")}`);

const promptsSince = (from: number): Prompt[] =>
  it.mock.requests
    .slice(from)
    .map(({ body }) => body)
    .filter((body) => !isSummary(body));
const summariesSince = (from: number) => it.mock.requests.slice(from).filter(({ body }) => isSummary(body));
const textOf = ({ messages }: Prompt): string => messages.map(({ content }) => content ?? "").join("\n");
const useModel = (model: string) => it.person.ask("PATCH", it.at(""), { model });
const rowsOf = (table: string): number =>
  it.server.foundation.store.sqlite.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0;

/** Sends a message, and returns the last prompt, the events of the run, and what was asked for summaries. */
async function ask(message: string) {
  const from = it.mock.requests.length;
  const { status, body } = await it.send(message);
  expect(status).toBe(200);
  const frames = (await it.until("run.completed", body.runId)).filter(({ data }) => data.runId === body.runId);
  const [prompt = { messages: [] }] = promptsSince(from).slice(-1);
  return { prompt, shown: textOf(prompt), kinds: kindsOf(frames), frames, summaries: summariesSince(from), body };
}

test("of 400 messages, a model of 32,768 tokens still knows the facts of the first ten, by one summary", async () => {
  it.whenSummarising(keepingFacts);
  const ids = writeMessages(it.server, it.agent, longTalk(400));
  const { prompt, shown, frames, summaries } = await ask("what colour is house 3?");
  expect(summaries.length).toBeGreaterThan(0);
  for (let at = 0; at < 10; at++) expect(shown).toContain(`the colour of house ${at} is shade${at}.`);
  expect(shown).not.toContain("not shown.)");
  expect(tokensOf(shown)).toBeLessThan(LARGE);
  const compacted = frames.filter(({ event }) => event === "context.compacted");
  expect(compacted).toHaveLength(1);
  const { fromMessageId, toMessageId, tokensBefore, tokensAfter } = compacted[0]?.data ?? {};
  expect(fromMessageId).toBe(ids[0]);
  expect(tokensAfter).toBeLessThanOrEqual((tokensBefore * 2) / 3);
  // What the summary does not stand for is there, all of it, in order.
  const covered = ids.indexOf(toMessageId) + 1;
  expect(prompt.messages.slice(1, -1)).toHaveLength(400 - covered);
  expect(shown).toContain(`Summary of ${covered} earlier messages`);
  // The messages themselves stay.
  expect(rowsOf(`messages WHERE conversation_id = '${defaultOf(it.agent)}'`)).toBe(402);
});

test("more than a thousand short messages are summarised, though the context has room for all of them", async () => {
  await useModel("openai:huge");
  writeMessages(it.server, it.agent, longTalk(1_010, 20));
  const { prompt, shown, kinds } = await ask("what colour is house 3?");
  expect(kinds).toContain("context.compacted");
  for (let at = 0; at < 10; at++) expect(shown).toContain(`the colour of house ${at} is shade${at}.`);
  expect(shown).not.toContain("not shown.)");
  // About half of them stay, so that the next summary is not soon.
  expect(prompt.messages.length).toBeGreaterThan(400);
  expect(prompt.messages.length).toBeLessThan(520);
  const next = await ask("and of house 4?");
  expect(next.summaries).toEqual([]);
  expect(next.shown).toContain("the colour of house 4 is shade4.");
});

test("of messages without end from before, the newest are summarised within a few messages, and the others counted", async () => {
  const COUNT = 7_000;
  writeMessages(it.server, it.agent, longTalk(COUNT, 30));
  let summaries = 0;
  for (let sent = 1; sent <= 12; sent++) {
    const asked = await ask(`go on ${sent}`);
    if (asked.summaries.length === 0) {
      const left = /\((\d+) other messages/.exec(asked.shown)?.[1];
      expect(Number(left)).toBeWithin(COUNT - 5_000 - 1_100, COUNT - 4_900);
      expect(asked.shown).toContain("They talked of the garden.");
      return expect(summaries).toBeGreaterThan(0);
    }
    summaries += asked.summaries.length;
  }
  throw new Error(`${summaries} summaries, and still not done`);
});

test("the next message makes no new summary, and finds the prompt before it unchanged", async () => {
  writeMessages(it.server, it.agent, longTalk(400));
  const first = await ask("one");
  const second = await ask("two");
  expect(second.summaries).toEqual([]);
  expect(second.prompt.messages.slice(0, first.prompt.messages.length)).toEqual(first.prompt.messages);
});

test("of 400 messages, a model of 2,048 tokens is shown the newest, and told how many it is not shown", async () => {
  await useModel("openai:small");
  writeMessages(it.server, it.agent, longTalk(400));
  const { prompt, shown, summaries, kinds } = await ask("what colour is house 3?");
  expect(summaries).toEqual([]);
  expect(kinds).not.toContain("context.compaction_failed");
  const turns = prompt.messages.length - 1;
  expect(turns).toBeGreaterThan(1);
  expect(shown).toContain(`(The ${401 - turns} oldest messages of this conversation are not shown.)`);
  expect(tokensOf(shown)).toBeLessThan(SMALL);
});

test("a summary of summaries keeps names and quoted words as they were, whatever the model writes", async () => {
  await useModel("openai:medium");
  const talk = longTalk(120);
  talk[2] = "The plan is in notes/plan-v2.md, ticket PROJ-17, order 4711023.";
  talk[4] = "We will paint the door green on Friday.";
  writeMessages(it.server, it.agent, talk);
  let round = 0;
  it.whenSummarising(() =>
    text(round++ === 0 ? 'Much was said. Decided: "We will paint the door green on Friday."' : "Much was said again."),
  );
  await ask("first");
  writeMessages(it.server, it.agent, longTalk(80));
  const { shown, kinds } = await ask("second");
  expect(kinds).toContain("context.compacted");
  for (const kept of ["notes/plan-v2.md", "PROJ-17", "4711023", "We will paint the door green on Friday."]) {
    expect(shown).toContain(kept);
  }
  expect(shown).toContain("Much was said again.");
});

test("a summary that is too long, empty or fails leaves the oldest out visibly, and is not tried with each message", async () => {
  await useModel("openai:medium");
  const outcomes: [MockAnswer, string][] = [
    [text("word ".repeat(20_000)), "shorter by a third"],
    [text(""), "wrote no summary"],
    [{ kind: "status", status: 400, body: { error: { message: "no" } } }, "refused"],
  ];
  for (const [answer, reason] of outcomes) {
    await it.begin();
    await useModel("openai:medium");
    it.whenSummarising(() => answer);
    writeMessages(it.server, it.agent, longTalk(120));
    const { frames, shown, prompt } = await ask("one");
    const failed = frames.find(({ event }) => event === "context.compaction_failed");
    expect(failed?.data.reason).toContain(reason);
    expect(shown).toContain(`(The ${121 - (prompt.messages.length - 1)} oldest messages of this conversation are not`);
    const again = await ask("two");
    expect(again.summaries).toEqual([]);
    expect(again.kinds).not.toContain("context.compaction_failed");
    // After more messages it is tried again, and succeeds.
    it.whenSummarising(keepingFacts);
    writeMessages(it.server, it.agent, longTalk(20).slice(10));
    writeMessages(it.server, it.agent, longTalk(20).slice(10));
    const third = await ask("three");
    expect(third.kinds).toContain("context.compacted");
    expect(third.shown).toContain("the colour of house 3 is shade3.");
  }
});

test("after a failure it is tried again, though messages have come to the end of their life meanwhile", async () => {
  const { store } = it.server.foundation;
  const expire = (ids: string[]) =>
    store.transaction(() => {
      for (const id of ids) store.sqlite.run("DELETE FROM messages WHERE message_id = ?", [id]);
    });
  const failed = async () => {
    await it.begin();
    await useModel("openai:medium");
    it.whenSummarising(() => text(""));
    const ids = writeMessages(it.server, it.agent, longTalk(120));
    expect((await ask("one")).kinds).toContain("context.compaction_failed");
    it.whenSummarising(keepingFacts);
    return ids;
  };
  expire((await failed()).slice(0, 40));
  writeMessages(it.server, it.agent, longTalk(20).slice(10));
  writeMessages(it.server, it.agent, longTalk(20).slice(10));
  expect((await ask("two")).kinds).toContain("context.compacted");
  // Fewer than are waited for, but none of those that could not be summarised.
  const ids = await failed();
  const { body } = await it.person.ask("GET", it.at("/messages?order=desc&limit=2"));
  writeMessages(it.server, it.agent, longTalk(20, 1_000).slice(10));
  expire([...ids, ...body.data.map(({ messageId }: { messageId: string }) => messageId)]);
  expect((await ask("two")).kinds).toContain("context.compacted");
});

test("cancelling a run while it summarises writes nothing, and the next one summarises", async () => {
  writeMessages(it.server, it.agent, longTalk(400));
  it.whenSummarising(() => ({ kind: "hang" }));
  const asked = it.mock.arrival(({ body }) => isSummary(body));
  const runId = await it.queue("one");
  await asked;
  expect((await it.cancel(runId)).body.status).toBe("cancelled");
  expect(rowsOf(`summaries WHERE conversation_id = '${defaultOf(it.agent)}'`)).toBe(0);
  it.whenSummarising(keepingFacts);
  expect((await ask("two")).kinds).toContain("context.compacted");
});

test("a summary of what a stranger may have written is marked, and so is every run that reads it", async () => {
  writeMessages(it.server, it.agent, longTalk(400), (at) => (at === 21 ? { tainted: true } : {}));
  const { shown } = await ask("one");
  expect(shown).toContain("untrusted-");
  expect(rowsOf(`summaries WHERE conversation_id = '${defaultOf(it.agent)}' AND tainted = 1`)).toBe(1);
  await ask("two");
  expect(rowsOf(`messages WHERE conversation_id = '${defaultOf(it.agent)}' AND tainted = 1`)).toBe(3);
});

test("clearing a conversation deletes its summaries, and a summary goes with any message that it stands for", async () => {
  const ids = writeMessages(it.server, it.agent, longTalk(400));
  await ask("one");
  const own = `summaries WHERE conversation_id = '${defaultOf(it.agent)}'`;
  expect(rowsOf(own)).toBe(1);
  const { store } = it.server.foundation;
  store.transaction(() => store.sqlite.run("DELETE FROM messages WHERE message_id = ?", [ids[5] ?? ""]));
  expect(rowsOf(own)).toBe(0);
  await ask("two");
  expect(rowsOf(own)).toBe(1);
  await it.person.ask("DELETE", it.at("/messages"));
  expect(rowsOf(own)).toBe(0);
  expect((await ask("three")).prompt.messages).toHaveLength(2);
});

test("a summary that is deleted while the next one is made does not come back in it", async () => {
  await useModel("openai:medium");
  const ids = writeMessages(it.server, it.agent, longTalk(120));
  await ask("first");
  const own = `summaries WHERE conversation_id = '${defaultOf(it.agent)}'`;
  expect(rowsOf(own)).toBe(1);
  writeMessages(it.server, it.agent, longTalk(80));
  const held = Promise.withResolvers<void>();
  it.whenSummarising(() => ({ kind: "text", tokens: ["More", " was said."], after: held.promise }));
  const asked = it.mock.arrival(({ body }) => isSummary(body));
  const runId = await it.queue("second");
  await asked;
  const { store } = it.server.foundation;
  store.transaction(() => store.sqlite.run("DELETE FROM messages WHERE message_id = ?", [ids[5] ?? ""]));
  held.resolve();
  const frames = (await it.until("run.completed", runId)).filter(({ data }) => data.runId === runId);
  const failed = frames.find(({ event }) => event === "context.compaction_failed");
  expect(failed?.data.reason).toContain("were deleted meanwhile");
  expect(rowsOf(own)).toBe(0);
});

test("a fork has the summary if it stands for copied messages alone", async () => {
  const ids = writeMessages(it.server, it.agent, longTalk(400));
  const { frames } = await ask("one");
  const to = ids.indexOf(frames.find(({ event }) => event === "context.compacted")?.data.toMessageId);
  const fork = async (messageId: string | undefined) =>
    (await it.person.ask("POST", it.at(`/conversations/${defaultOf(it.agent)}/fork`), { messageId })).body;
  const [before, after] = [await fork(ids[to - 3]), await fork(ids[to + 4])];
  const own = ({ conversationId }: { conversationId: string }) =>
    `summaries WHERE conversation_id = '${conversationId}'`;
  expect([rowsOf(own(before)), rowsOf(own(after))]).toEqual([0, 1]);
  const from = it.mock.requests.length;
  await it.send("in the fork", { conversationId: after.conversationId });
  const [prompt = { messages: [] }] = promptsSince(from);
  expect(textOf(prompt)).toContain(`Summary of ${to + 1} earlier messages`);
  // The four copied messages after it, and the new one.
  expect(prompt.messages).toHaveLength(1 + 4 + 1);
});

test("a summary is told who asked: a person, a schedule, the heartbeat, a trigger or another agent", async () => {
  const ORIGINS = ["user", "schedule", "heartbeat", "trigger", "agent"] as const;
  writeMessages(it.server, it.agent, longTalk(400), (at) => {
    const originType = ORIGINS[(at / 2) % ORIGINS.length];
    if (originType === undefined || originType === "user") return {};
    return { originType, originId: "x", senderType: originType, senderName: "Every\nmorning" };
  });
  const { summaries } = await ask("what colour is house 3?");
  const told = summaries.map(({ body }) => textOf(body)).join("\n");
  for (const [at, who] of [
    "Person",
    'The schedule "Every morning", no person',
    "The heartbeat, no person",
    'The trigger "Every morning", no person',
    'The agent "Every morning", no person',
  ].entries()) {
    expect(told).toContain(`${who}: Fact ${2 * at}:`);
  }
});
