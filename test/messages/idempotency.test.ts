import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type Conversation, kindsOf, startConversation } from "./conversation.ts";

let it: Conversation;
beforeAll(async () => {
  it = await startConversation();
  it.when("begin", { kind: "text", tokens: ["Once", " upon"], delayMs: 1, ending: "hang" });
});
afterAll(() => it.stop());
beforeEach(() => it.begin());

const key = () => ({ "Idempotency-Key": crypto.randomUUID() });
const userMessages = async (): Promise<number> =>
  (await it.person.ask("GET", it.at("/messages"))).body.data.filter(({ role }: { role: string }) => role === "user")
    .length;

test("a plain message sent twice with one key is answered twice and run once", async () => {
  const headers = key();
  const first = await it.send("hi", {}, headers);
  const again = await it.send("hi", {}, headers);
  expect(first.headers.get("idempotent-replayed")).toBeNull();
  expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
  expect(again.body).toEqual(first.body);
  expect(await userMessages()).toBe(1);
});

test("a replayed stream is the run's events from the log, word for word", async () => {
  const headers = key();
  await using first = await it.stream("hi", headers);
  await first.rest();
  await it.send("something between");
  await using again = await it.stream("hi", headers);
  await again.rest();
  expect(again.response.headers.get("idempotent-replayed")).toBe("true");
  // A stream that is open for long is pinged in between.
  const [then, now] = [first, again].map((stream) => stream.text().replaceAll(": ping\n\n", ""));
  expect(now).toBe(then);
  expect(await userMessages()).toBe(2);
});

test("a replay of a run in progress follows it to its end", async () => {
  const headers = key();
  await using first = await it.stream("begin", headers);
  const { data } = (await first.until(({ event }) => event === "message.delta")).at(-1) ?? { data: {} };
  await using again = await it.stream("begin", headers);
  await again.until(({ event }) => event === "message.delta");
  await it.cancel(data.runId);
  expect(await again.rest()).toEqual(await first.rest());
  expect(kindsOf(again.frames).at(-1)).toBe("run.cancelled");
  expect(await userMessages()).toBe(1);
});

test("while the first plain request waits for its run, the same key is 409 with Retry-After", async () => {
  const headers = key();
  const first = it.send("begin", {}, headers);
  const { data } = (await it.until("message.delta")).at(-1) ?? { data: {} };
  const second = await it.send("begin", {}, headers);
  expect([second.status, second.headers.get("retry-after"), second.body.error.code]).toEqual([409, "1", "conflict"]);
  await it.cancel(data.runId);
  expect((await first).body.finishReason).toBe("cancelled");
  expect((await it.send("begin", {}, headers)).body).toEqual((await first).body);
});

test("the same key with another message is 409, and a failed run is not run again", async () => {
  const headers = key();
  it.when("refused", { kind: "status", status: 400 });
  const first = await it.send("refused", {}, headers);
  it.when("refused", { kind: "text", tokens: ["too late"] });
  const again = await it.send("refused", {}, headers);
  expect([first.status, again.status]).toEqual([502, 502]);
  expect([first, again].map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([null, "true"]);
  expect(again.body.error.message).toBe(first.body.error.message);
  expect((await it.send("another", {}, headers)).status).toBe(409);
  expect(await userMessages()).toBe(1);
});

test("a refused message may be sent again with its key once it can be accepted", async () => {
  const headers = key();
  await it.person.ask("POST", `/v1/instances/${it.instance}/stop`);
  expect((await it.send("hi", {}, headers)).status).toBe(503);
  await it.person.ask("POST", `/v1/instances/${it.instance}/start`);
  expect((await it.send("hi", {}, headers)).status).toBe(200);
});

test("an asynchronous message is replayed with its run as it is now", async () => {
  const headers = { ...key(), Prefer: "respond-async" };
  const first = await it.send("hi", {}, headers);
  await it.until("run.completed", first.body.runId);
  const again = await it.send("hi", {}, headers);
  expect(again.status).toBe(202);
  expect(again.body).toEqual({ ...first.body, status: "completed" });
});
