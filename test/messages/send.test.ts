import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Conversation, kindsOf, shownText, startConversation } from "./conversation.ts";

let it: Conversation;
beforeAll(async () => {
  it = await startConversation();
});
afterAll(() => it.stop());

test("a message is answered with the agent's message record", async () => {
  const { status, body } = await it.send("hi");
  expect(status).toBe(200);
  expect(body).toEqual({
    messageId: expect.stringMatching(/^msg_[0-9a-f]{32}$/),
    agentId: it.agent,
    conversationId: it.agent.replace("agt_", "conv_"),
    runId: expect.stringMatching(/^run_[0-9a-f]{32}$/),
    role: "agent",
    message: "Hello, world",
    sender: { type: "agent", id: it.agent, name: "Ada" },
    inReplyTo: expect.stringMatching(/^msg_[0-9a-f]{32}$/),
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    usage: { promptTokens: 12, completionTokens: 3, totalTokens: 15 },
    finishReason: "stop",
    origin: null,
  });
});

test("a sender that is not named is the account's user", async () => {
  await it.send("who am I");
  await it.send("and I", { sender: { name: "Bo" } });
  await it.send("and this", { sender: { type: "service", id: "cron", name: "Cron" } });
  await it.send("and nobody", { sender: null });
  const { body } = await it.person.ask("GET", it.at("/messages?order=desc&limit=8"));
  const account = { type: "human", id: it.person.accountId, name: it.person.email.split("@")[0] };
  const senders = body.data.filter(({ role }: { role: string }) => role === "user").reverse();
  expect(senders.map(({ sender }: { sender: object }) => sender)).toEqual([
    account,
    { ...account, name: "Bo" },
    { type: "service", id: "cron", name: "Cron" },
    account,
  ]);
});

test("stream: true sends the run's events, in the contract's format, and ends with the run", async () => {
  await using stream = await it.stream("stream");
  expect(stream.response.status).toBe(200);
  expect(stream.response.headers.get("content-type")).toStartWith("text/event-stream");
  // A proxy may neither keep nor compress it.
  expect(stream.response.headers.get("cache-control")).toBe("no-store, no-transform");
  const frames = await stream.rest();
  expect(stream.text()).toStartWith("retry: 2000\n\nid: ");
  expect(kindsOf(frames)).toEqual(["run.queued", "run.started", "message.delta", "message.completed", "run.completed"]);
  for (const { id, event, data } of frames) {
    expect(data).toMatchObject({ id, type: event, agentId: it.agent, runId: frames[0]?.data.runId });
    expect(new Date(data.createdAt).toISOString()).toBe(data.createdAt);
  }
  const ids = frames.map(({ id }) => id);
  expect(ids).toEqual(ids.map((_, index) => (ids[0] ?? 0) + index));
  const completed = frames.find(({ event }) => event === "message.completed")?.data.message;
  expect(completed).toMatchObject({ message: "Hello, world", role: "agent", finishReason: "stop" });
  expect(shownText(frames)).toBe("Hello, world");
});

test("Prefer: respond-async answers at once with the run, which continues", async () => {
  for (const prefer of ["respond-async", "wait=10, Respond-Async"]) {
    const { status, headers, body } = await it.send("later", {}, { Prefer: prefer });
    expect(status).toBe(202);
    expect(headers.get("preference-applied")).toBe("respond-async");
    expect(body).toEqual({
      runId: expect.stringMatching(/^run_/),
      messageId: expect.stringMatching(/^msg_/),
      status: "queued",
    });
    await it.until("run.completed", body.runId);
  }
  expect((await it.send("now", {}, { Prefer: "respond-asynchronously" })).status).toBe(200);
});

test("a message's length is counted in code points, and it cannot be blank", async () => {
  const long = await it.send("🎈".repeat(32_000));
  expect(long.status).toBe(200);
  const refused = ["🎈".repeat(32_001), "a".repeat(32_001), "", " \n\t\u00a0\u2003", "\ud83d lonely", null, 7, ["hi"]];
  for (const message of refused) {
    const { status, body } = await it.person.ask("POST", it.at("/messages"), { message });
    expect(status).toBe(400);
    expect(body.error.message).toStartWith("message: expected ");
  }
  const bodies = [
    {},
    { message: "hi", stream: "yes" },
    { message: "hi", sender: "me" },
    { message: "hi", sender: { name: "" } },
  ];
  for (const body of bodies) expect((await it.person.ask("POST", it.at("/messages"), body)).status).toBe(400);
});

test("a message with half of a surrogate pair is refused for that, not for its length", async () => {
  const { status, body } = await it.person.ask("POST", it.at("/messages"), { message: "\ud83d lonely" });
  const message = "message: expected text of whole characters, without half of a surrogate pair";
  expect([status, body.error.message]).toEqual([400, message]);
});

test("text is returned exactly as it was written", async () => {
  const text = '  two\r\n lines, "quotes", \\ back\u2028slash \u0000 🎈  ';
  it.when(text, { kind: "text", tokens: ["a\nb\r\n\r\nc", "\u2028\u0007 ", "🎈", "data: x\n\n"] });
  await using stream = await it.stream(text);
  const frames = await stream.rest();
  const spoken = "a\nb\r\n\r\nc\u2028\u0007 🎈data: x\n\n";
  expect(shownText(frames)).toBe(spoken);
  const { body } = await it.person.ask("GET", it.at("/messages?order=desc&limit=2"));
  expect(body.data.map(({ message }: { message: string }) => message)).toEqual([spoken, text]);
});

test("the model gets the persona, the conversation so far and the message", async () => {
  const agent = await it.newAgent({
    name: "Zed",
    useDefaults: false,
    files: { "SOUL.md": "You speak like a pirate." },
  });
  const path = `/v1/instances/${it.instance}/agents/${agent}/messages`;
  await it.person.ask("POST", path, { message: "first" });
  await it.person.ask("POST", path, { message: "second" });
  const { messages } = it.mock.requests.at(-1)?.body ?? {};
  expect(messages[0].role).toBe("system");
  expect(messages[0].content).toStartWith("You are Zed.");
  expect(messages[0].content).toContain("You speak like a pirate.");
  expect(messages.slice(1)).toEqual([
    { role: "user", content: "first" },
    { role: "assistant", content: "Hello, world" },
    { role: "user", content: "second" },
  ]);
});

test("a length limit of the model is reported as the finish reason", async () => {
  it.when("long", { kind: "text", tokens: ["and so on"], finish: "length" });
  expect((await it.send("long")).body).toMatchObject({ message: "and so on", finishReason: "length" });
});

test("an unknown agent, another account's and a malformed id get the same 404", async () => {
  const stranger = await it.server.signUp();
  const missing = `/v1/instances/${it.instance}/agents/agt_${"0".repeat(32)}`;
  const paths = ["/messages", "/events", `/runs/run_${"0".repeat(32)}`];
  for (const path of paths) {
    const method = "GET";
    const foreign = await stranger.ask(method, it.at(path));
    expect(foreign.status).toBe(404);
    expect((await it.person.ask(method, missing + path)).status).toBe(404);
    expect((await it.server.ask(method, it.at(path))).status).toBe(401);
  }
  expect((await stranger.ask("POST", it.at("/messages"), { message: "" })).status).toBe(404);
  expect((await it.person.ask("POST", `${missing}/messages`, {})).status).toBe(404);
  for (const runId of ["run_1", "x", `run_${"0".repeat(32)}`]) {
    expect((await it.run(runId)).status).toBe(404);
    expect((await it.cancel(runId)).status).toBe(404);
  }
});

test("a run is found only under its own agent", async () => {
  const { body } = await it.send("mine");
  const other = await it.newAgent({ name: "Other" });
  const path = `/v1/instances/${it.instance}/agents/${other}/runs/${body.runId}`;
  expect((await it.person.ask("GET", path)).status).toBe(404);
  expect((await it.person.ask("POST", `${path}/cancel`)).status).toBe(404);
});

test("an instance that is not running accepts no message, and says when to try again", async () => {
  const second = (await it.person.ask("POST", "/v1/instances", { name: "asleep" })).body.instanceId;
  const { agentId } = (await it.person.ask("POST", `/v1/instances/${second}/agents`, { name: "Cy" })).body;
  await it.person.ask("POST", `/v1/instances/${second}/stop`);
  const path = `/v1/instances/${second}/agents/${agentId}`;
  const { status, headers, body } = await it.person.ask("POST", `${path}/messages`, { message: "hi" });
  expect(status).toBe(503);
  expect(body.error.code).toBe("instance_not_ready");
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await it.person.ask("POST", `${path}/messages`, {})).status).toBe(400);
  expect((await it.person.ask("GET", `${path}/messages`)).body.data).toEqual([]);
});
