import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { newId } from "../../src/lib/id.ts";
import { messageQueries } from "../../src/messages/queries.ts";
import { type Conversation, startConversation } from "./conversation.ts";

let it: Conversation;
beforeAll(async () => {
  it = await startConversation();
});
afterAll(() => it.stop());
beforeEach(() => it.begin());

interface Record {
  messageId: string;
  conversationId: string;
  message: string;
  role: string;
  runId: string;
  inReplyTo: string | null;
}
const idOfDefault = () => it.agent.replace("agt_", "conv_");
const ask = (method: string, path: string, body?: object) => it.person.ask(method, it.at(path), body);
const fork = (messageId: string, of = idOfDefault()) => ask("POST", `/conversations/${of}/fork`, { messageId });
const messagesOf = async (conversationId: string): Promise<Record[]> => {
  const all: Record[] = [];
  for (let after = ""; ; ) {
    const { body } = await ask("GET", `/messages?order=asc&limit=100&conversationId=${conversationId}${after}`);
    all.push(...body.data);
    if (!body.hasMore) return all;
    after = `&after=${body.nextCursor}`;
  }
};
const store = () => it.server.foundation.store;
const count = (sql: string, ...values: string[]) =>
  Object.values(
    store()
      .sqlite.query<{ [name: string]: number }, string[]>(sql)
      .get(...values) ?? {},
  )[0] ?? 0;

/** A history of this many exchanges in the default conversation. Returns the messages' ids. */
function past(exchanges: number, length = 10): string[] {
  const { insertMessage } = messageQueries(store().db);
  const of = { agentId: it.agent, conversationId: idOfDefault(), senderType: "human", senderId: "x", senderName: "x" };
  const rest = {
    tainted: false,
    originType: null,
    originId: null,
    finishReason: null,
    promptTokens: null,
    completionTokens: null,
    createdAt: 1,
  };
  return store().transaction(() =>
    Array.from({ length: exchanges }, (_, at) => {
      const [asked, answered, runId] = [newId("msg"), newId("msg"), newId("run")];
      const text = `${at} `.padEnd(length, "x");
      insertMessage({ ...of, ...rest, messageId: asked, runId, role: "user", text, inReplyTo: null });
      insertMessage({ ...of, ...rest, messageId: answered, runId, role: "agent", text, inReplyTo: asked });
      return [asked, answered];
    }).flat(),
  );
}

test("a fork is a copy up to and including a message, under new ids, and continues by itself", async () => {
  for (const text of ["one", "two", "three"]) await it.send(text);
  const originals = await messagesOf(idOfDefault());
  const { status, body } = await fork(originals[3]?.messageId ?? "");
  expect(status).toBe(201);
  expect(body).toMatchObject({
    agentId: it.agent,
    isDefault: false,
    messageCount: 4,
    origin: { type: "user", id: null },
  });
  const copies = await messagesOf(body.conversationId);
  expect(copies.map(({ message }) => message)).toEqual(["one", "Hello, world", "two", "Hello, world"]);
  expect(new Set([...originals, ...copies].map(({ messageId }) => messageId)).size).toBe(10);
  expect(copies.map(({ inReplyTo }) => inReplyTo)).toEqual([
    null,
    copies[0]?.messageId,
    null,
    copies[2]?.messageId,
  ] as never);
  await ask("POST", "/messages", { message: "four", conversationId: body.conversationId });
  const prompt = JSON.stringify(it.mock.requests.at(-1)?.body.messages);
  expect([prompt.includes("two"), prompt.includes("three"), prompt.includes("four")]).toEqual([true, false, true]);
  expect(await messagesOf(idOfDefault())).toEqual(originals);
});

test("a long conversation is forked one page per commit, in order, every reply to its own message", async () => {
  const ids = past(450);
  let most = 0;
  const { commitSoon } = store();
  const changes = () => count("SELECT total_changes()");
  store().commitSoon = ((work: () => unknown, durability: "full" | "process") =>
    commitSoon(() => {
      const before = changes();
      const result = work();
      most = Math.max(most, changes() - before);
      return result;
    }, durability)) as typeof commitSoon;
  const { body } = await fork(ids.at(-2) ?? "").finally(() => {
    store().commitSoon = commitSoon;
  });
  // At most a hundred messages, each of which changes its own row and two totals.
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(310);
  const [originals, copies] = [await messagesOf(idOfDefault()), await messagesOf(body.conversationId)];
  expect(copies.map(({ message, role }) => [message, role])).toEqual(
    originals.slice(0, -1).map(({ message, role }) => [message, role]),
  );
  expect(copies.every(({ inReplyTo }, at) => inReplyTo === (at % 2 === 0 ? null : copies[at - 1]?.messageId))).toBe(
    true,
  );
  expect(body.messageCount).toBe(899);
});

test("a message of another conversation, or a cleared one, cannot be forked at", async () => {
  const { messageId } = (await it.send("hi")).body;
  const { conversationId } = (await ask("POST", "/conversations", {})).body;
  for (const id of [`msg_${"0".repeat(32)}`, "msg_x", messageId]) {
    expect([id, (await fork(id, conversationId)).status]).toEqual([id, 404]);
  }
  expect((await fork("msg_x")).status).toBe(404);
  expect((await ask("POST", `/conversations/${conversationId}/fork`, {})).status).toBe(400);
  await ask("DELETE", "/messages");
  expect((await fork(messageId)).status).toBe(404);
});

test("a conversation that is cleared, or whose agent is deleted, while it is forked leaves no partial copy", async () => {
  for (const end of [() => ask("DELETE", "/messages"), () => ask("DELETE", "")]) {
    await it.begin();
    const ids = past(400);
    const { commitSoon } = store();
    let commits = 0;
    store().commitSoon = ((work: () => unknown, durability: "full" | "process") => {
      // Its next part waits for the end of the other request: the fork is never faster.
      if (++commits === 3) return end().then(() => commitSoon(work, durability));
      return commitSoon(work, durability);
    }) as typeof commitSoon;
    const { status } = await fork(ids.at(-1) ?? "").finally(() => {
      store().commitSoon = commitSoon;
    });
    expect(status).toBe(404);
    await it.server.app.settled();
    expect(count("SELECT count(*) FROM conversations WHERE agent_id = ? AND is_default = 0", it.agent)).toBe(0);
    expect(count("SELECT count(*) FROM messages WHERE agent_id = ?", it.agent)).toBe(0);
  }
});

test("what a crash leaves of a fork is hidden, and removed at the next start", async () => {
  const id = newId("conv");
  store().transaction(() =>
    store().sqlite.run(
      "INSERT INTO conversations (conversation_id, agent_id, state, updated_at, created_at) VALUES (?, ?, 'copying', 9, 9)",
      [id, it.agent],
    ),
  );
  expect((await ask("GET", `/conversations/${id}`)).status).toBe(404);
  expect((await ask("GET", "/conversations")).body.data).toHaveLength(1);
  await it.server.restart();
  await it.server.app.settled();
  expect(count("SELECT count(*) FROM conversations WHERE conversation_id = ?", id)).toBe(0);
});

test("forking while a run is in progress copies what was said so far, and the run continues", async () => {
  it.when("begin", { kind: "text", tokens: ["Once"], delayMs: 1, ending: "hang" });
  const { messageId } = (await it.send("hi")).body;
  const runId = await it.queue("begin");
  await it.until("message.delta", runId);
  const pending = (await messagesOf(idOfDefault())).at(-1)?.messageId ?? "";
  const [before, after] = [(await fork(messageId)).body, (await fork(pending)).body];
  expect((await messagesOf(before.conversationId)).map(({ message }) => message)).toEqual(["hi", "Hello, world"]);
  expect((await messagesOf(after.conversationId)).map(({ message }) => message)).toEqual([
    "hi",
    "Hello, world",
    "begin",
  ]);
  await it.cancel(runId);
  expect(await messagesOf(after.conversationId)).toHaveLength(3);
  expect((await messagesOf(idOfDefault())).at(-1)).toMatchObject({ message: "Once", runId });
});
