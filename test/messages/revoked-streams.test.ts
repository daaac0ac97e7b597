import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Conversation, type EventStream, readEvents, startConversation } from "./conversation.ts";

let it: Conversation;
beforeAll(async () => {
  it = await startConversation();
});
afterAll(() => it.stop());

/** Opens a stream of all the agent's events, and one of a message that is being answered, with this credential. */
async function streamsOf(headers: Record<string, string>): Promise<EventStream[]> {
  const open = async (method: string, path: string, body?: object) =>
    readEvents(
      await fetch(new URL(it.at(path), it.server.url), {
        method,
        headers: { ...headers, "Content-Type": "application/json" },
        ...(body ? { body: JSON.stringify(body) } : {}),
      }),
    );
  it.when("hold", { kind: "hang" });
  return [await open("GET", "/events"), await open("POST", "/messages", { message: "hold", stream: true })];
}

const newKey = async (body: object = {}) => (await it.person.ask("POST", "/v1/auth/keys", body)).body;
const bearer = { toString: () => `Bearer ${it.person.token}` };

async function expectEnd(streams: EventStream[]): Promise<void> {
  expect(streams.map(({ response }) => response.status)).toEqual([200, 200]);
  // Only the stream ends; the run continues.
  for (const stream of streams) {
    const kinds = (await stream.rest()).map(({ event }) => event);
    expect(kinds).not.toContain("run.cancelled");
  }
  await it.begin();
}

test("a stream ends when its key is revoked, and another key's continues", async () => {
  const [key, other] = [await newKey(), await newKey()];
  const streams = await streamsOf({ "X-API-Key": key.key });
  await using others = readEvents(
    await fetch(new URL(it.at("/events"), it.server.url), { headers: { "X-API-Key": other.key } }),
  );
  await it.person.ask("DELETE", `/v1/auth/keys/${key.keyId}`);
  await it.person.ask("PATCH", it.at(""), { displayName: "after" });
  await expect(others.until(({ event }) => event === "agent.updated")).resolves.toBeDefined();
  await expectEnd(streams);
});

test("a message that waits for its answer is 401 when its key is revoked, and its run continues", async () => {
  const { key, keyId } = await newKey();
  it.when("hold", { kind: "text", tokens: ["held"], ending: "hang" });
  const waiting = it.server.ask("POST", it.at("/messages"), { key, body: { message: "hold" } });
  const { runId } = (await it.until("message.delta")).at(-1)?.data ?? {};
  await it.person.ask("DELETE", `/v1/auth/keys/${keyId}`);
  const { status, body } = await waiting;
  expect([status, body.error.code]).toEqual([401, "unauthorized"]);
  expect((await it.run(runId)).body.status).toBe("running");
  await it.begin();
});

test("a stream ends when its key expires", async () => {
  const { key, keyId } = await newKey();
  const streams = await streamsOf({ "X-API-Key": key });
  const { store } = it.server.foundation;
  store.transaction(() => store.sqlite.run("UPDATE api_keys SET expires_at = ? WHERE key_id = ?", [Date.now(), keyId]));
  await expectEnd(streams);
});

test("a stream ends when its account is suspended by the operator's command", async () => {
  const streams = await streamsOf({ Authorization: String(bearer) });
  const { accounts } = it.server.foundation;
  accounts.setSuspended(it.person.accountId, true);
  for (const stream of streams) await stream.rest();
  accounts.setSuspended(it.person.accountId, false);
  await it.person.ask("POST", `/v1/instances/${it.instance}/start`);
  await it.begin();
});

test("a stream ends when the account's tokens are revoked", async () => {
  const streams = await streamsOf({ Authorization: String(bearer) });
  const { key } = await newKey();
  await it.person.ask("POST", "/v1/auth/revoke-tokens");
  expect(streams.map(({ response }) => response.status)).toEqual([200, 200]);
  for (const stream of streams) await stream.rest();
  expect((await it.server.ask("GET", "/v1/auth/me", { key })).status).toBe(200);
});
