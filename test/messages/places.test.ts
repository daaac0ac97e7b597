import { afterEach, expect, test } from "bun:test";
import { type Conversation, kindsOf, readEvents, startConversation } from "./conversation.ts";

let it: Conversation | undefined;
afterEach(async () => {
  await it?.stop();
  it = undefined;
});

const awake = async ({ server }: Conversation): Promise<number> => {
  const { body } = await server.ask("GET", "/metrics");
  return Number(/^roost_workers_awake (\d+)$/m.exec(String(body))?.[1]);
};

test("more instances than may be awake all answer: the longest idle worker is put to sleep for the next", async () => {
  it = await startConversation({ ROOST_MAX_AWAKE: "2" });
  const { person } = it;
  for (let at = 0; at < 6; at++) {
    const { instanceId } = (await person.ask("POST", "/v1/instances", { name: `${at}` })).body;
    const agents = `/v1/instances/${instanceId}/agents`;
    const { agentId } = (await person.ask("POST", agents, { name: "Ada" })).body;
    expect((await person.ask("POST", `${agents}/${agentId}/messages`, { message: "hi" })).status).toBe(200);
    expect(await awake(it)).toBeWithin(1, 3);
  }
});

test("if every worker is busy, runs wait, and another account's comes first among them", async () => {
  it = await startConversation({ ROOST_MAX_AWAKE: "1" });
  const { server, mock } = it;
  const free = Promise.withResolvers<void>();
  it.when("hold", { kind: "text", tokens: ["held"], after: free.promise });
  const asked = mock.requests.length + 1;
  await it.queue("hold");
  await mock.arrived(asked);

  const waiting: { who: string; run: string; at: string; ask: typeof it.person.ask }[] = [];
  for (const [who, person] of [
    ["busy", it.person],
    ["busy", it.person],
    ["quiet", await server.signUp()],
  ] as const) {
    const { instanceId } = (await person.ask("POST", "/v1/instances", { name: who })).body;
    const agents = `/v1/instances/${instanceId}/agents`;
    const { agentId } = (await person.ask("POST", agents, { name: "Ada" })).body;
    const at = `${agents}/${agentId}`;
    const sent = await person.ask(
      "POST",
      `${at}/messages`,
      { message: `${who} ${waiting.length}` },
      { Prefer: "respond-async" },
    );
    waiting.push({ who, run: sent.body.runId, at, ask: person.ask });
    expect((await person.ask("GET", `${at}/runs/${sent.body.runId}`)).body.status).toBe("queued");
  }
  free.resolve();
  for (const { run, at, ask } of waiting) {
    await expect(untilEnded(() => ask("GET", `${at}/runs/${run}`))).resolves.toBe("completed");
  }
  const order = mock.requests.slice(asked).map(({ body }) => body.messages.at(-1).content);
  expect(order).toEqual(["busy 0", "quiet 2", "busy 1"]);
});

async function untilEnded(ask: () => Promise<{ body: { status: string } }>): Promise<string> {
  for (;;) {
    const { status } = (await ask()).body;
    if (status !== "queued" && status !== "running") return status;
  }
}

test("event streams of one account are bounded; closing one makes room, and no other account is affected", async () => {
  it = await startConversation({ ROOST_MAX_STREAMS: "3" });
  const streams = await Promise.all([it.events(), it.events(), it.events()]);
  expect(streams.map(({ response }) => response.status)).toEqual([200, 200, 200]);
  const refused = await it.person.ask("GET", it.at("/events"));
  expect([refused.status, refused.body.error.code, refused.headers.get("retry-after")]).toEqual([
    429,
    "rate_limited",
    "5",
  ]);
  expect((await it.send("hi", { stream: true })).status).toBe(200);
  expect((await it.send("hi")).status).toBe(200);

  const other = await it.server.signUp();
  const { instanceId } = (await other.ask("POST", "/v1/instances", { name: "other" })).body;
  const { agentId } = (await other.ask("POST", `/v1/instances/${instanceId}/agents`, { name: "Bo" })).body;
  await using others = readEvents(await other.fetch("GET", `/v1/instances/${instanceId}/agents/${agentId}/events`));
  expect(others.response.status).toBe(200);

  await streams[0]?.close();
  let again = await it.events();
  while (again.response.status === 429) again = await it.events();
  expect(again.response.status).toBe(200);
  for (const stream of [...streams, again]) await stream.close();
});

test("a message whose answer cannot be streamed now is refused before it is written", async () => {
  it = await startConversation({ ROOST_MAX_STREAMS: "1" });
  const free = Promise.withResolvers<void>();
  it.when("hold", { kind: "text", tokens: ["held"], after: free.promise });
  const held = await it.stream("hold");
  const refused = await it.send("one more");
  expect(refused.status).toBe(429);
  expect((await it.send("later", {}, { Prefer: "respond-async" })).status).toBe(202);
  free.resolve();
  await held.rest();
  const { body } = await it.person.ask("GET", it.at("/messages"));
  const said = body.data.map(({ message }: { message: string }) => message);
  expect(said).toContain("later");
  expect(said).not.toContain("one more");
});

test("replays of a message in progress are streams like any other", async () => {
  it = await startConversation({ ROOST_MAX_STREAMS: "2" });
  const free = Promise.withResolvers<void>();
  it.when("hold", { kind: "text", tokens: ["held"], after: free.promise });
  const key = { "Idempotency-Key": "again" };
  const first = await it.stream("hold", key);
  const second = await it.stream("hold", key);
  expect((await it.stream("hold", key)).response.status).toBe(429);
  free.resolve();
  expect(kindsOf(await first.rest()).at(-1)).toBe("run.completed");
  expect(kindsOf(await second.rest()).at(-1)).toBe("run.completed");
});

test("a message whose client has left gives back its place, and its key is answered from its run", async () => {
  it = await startConversation({ ROOST_MAX_STREAMS: "1" });
  it.when("hold", { kind: "text", tokens: ["held"], ending: "hang" });
  const key = { "Idempotency-Key": "again" };
  const leaving = new AbortController();
  const left = fetch(new URL(it.at("/messages"), it.server.url), {
    method: "POST",
    headers: { ...key, Authorization: `Bearer ${it.person.token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ message: "hold" }),
    signal: leaving.signal,
  });
  const { runId } = (await it.until("message.delta")).at(-1)?.data ?? {};
  leaving.abort();
  await expect(left).rejects.toThrow();
  // Until the host has seen that the connection is gone.
  const ask = () => it?.send("hold", {}, { ...key, Prefer: "respond-async" });
  let again = await ask();
  while (again?.status === 409) again = await ask();
  expect(again).toMatchObject({ status: 202, body: { runId, status: "running" } });
  const asked = it.mock.requests.length;
  const whole = it.send("hold", {}, key);
  await it.cancel(runId);
  expect((await whole).body).toMatchObject({ message: "held", finishReason: "cancelled" });
  expect(it.mock.requests).toHaveLength(asked);
});
