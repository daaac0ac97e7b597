import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type Conversation, kindsOf, startConversation } from "./conversation.ts";

let it: Conversation;
beforeAll(async () => {
  it = await startConversation();
  it.when("begin", { kind: "text", tokens: ["Once", " upon"], delayMs: 1, ending: "hang" });
});
afterAll(() => it.stop());
beforeEach(() => it.begin());

const page = async (query: string) => (await it.person.ask("GET", it.at(`/messages${query}`))).body;
const texts = (body: { data: { message: string }[] }): string[] => body.data.map(({ message }) => message);

test("the conversation pages oldest first, or newest first, and stays complete while new messages come", async () => {
  for (const text of ["1", "2", "3"]) await it.send(text);
  const all = ["1", "Hello, world", "2", "Hello, world", "3", "Hello, world"];
  expect(await page("")).toMatchObject({ hasMore: false, nextCursor: null });
  expect(texts(await page(""))).toEqual(all);
  expect(texts(await page("?order=desc"))).toEqual(all.toReversed());
  for (const order of ["asc", "desc"]) {
    const seen: string[] = [];
    let cursor = "";
    for (;;) {
      const one = await page(`?limit=2&order=${order}${cursor}`);
      seen.push(...texts(one));
      if (order === "desc") await it.send("new");
      if (!one.hasMore) break;
      cursor = `&after=${one.nextCursor}`;
    }
    expect(seen).toEqual(order === "asc" ? all : all.toReversed());
  }
});

test("a cursor is valid only for its own list and order", async () => {
  for (const text of ["1", "2"]) await it.send(text);
  const { nextCursor } = await page("?limit=1");
  const bad = [
    `?limit=1&order=desc&after=${nextCursor}`,
    "?after=x",
    "?limit=0",
    "?limit=101",
    "?limit=a",
    "?order=up",
  ];
  for (const query of bad) {
    const { status, body } = await it.person.ask("GET", it.at(`/messages${query}`));
    expect([query, status, body.error.code]).toEqual([query, 400, "invalid_request"]);
  }
  await it.begin();
  expect((await it.person.ask("GET", it.at(`/messages?after=${nextCursor}`))).status).toBe(400);
});

test("after clearing, the old conversation is gone from the history, the log and the prompt", async () => {
  const { body } = await it.send("secret plan");
  const answer = await it.person.ask("DELETE", it.at("/messages"));
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ agentId: it.agent, deleted: true });
  expect((await page("")).data).toEqual([]);
  expect((await it.run(body.runId)).status).toBe(404);
  await it.send("next");
  await using events = await it.events(0);
  await events.until(({ event }) => event === "message.completed");
  expect(events.text()).not.toContain("secret plan");
  expect(events.frames.filter(({ data }) => data.runId === body.runId).map(({ event }) => event)).toEqual([
    "run.queued",
    "run.started",
    "run.completed",
  ]);
  const { messages } = it.mock.requests.at(-1)?.body ?? {};
  expect(messages.slice(1)).toEqual([{ role: "user", content: "next" }]);
});

test("clearing while a run is in progress answers its request and ends its stream", async () => {
  await using stream = await it.stream("begin");
  await stream.until(({ event }) => event === "message.delta");
  const waiting = it.send("waiting");
  await it.until("run.queued");
  await using events = await it.events(0);
  await events.until(() => kindsOf(events.frames).filter((kind) => kind === "run.queued").length === 2);
  await it.person.ask("DELETE", it.at("/messages"));
  const { status, body } = await waiting;
  expect([status, body.finishReason]).toEqual([200, "cancelled"]);
  expect((await stream.rest()).at(-1)?.event).toBe("run.cancelled");
  expect((await page("")).data).toEqual([]);
  expect((await it.send("hi")).status).toBe(200);
});

test("a reader that was disconnected while the conversation was cleared learns how its run ended", async () => {
  await using stream = await it.stream("begin");
  const frames = await stream.until(({ event }) => event === "message.delta");
  const { id, data } = frames.at(-1) ?? { id: 0, data: {} };
  await stream.close();
  await it.person.ask("DELETE", it.at("/messages"));
  await using events = await it.events(id);
  await events.until((frame) => frame.event === "run.cancelled" && frame.data.runId === data.runId);
});
