import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type Conversation, kindsOf, readEvents, shownText, startConversation } from "./conversation.ts";

let it: Conversation;
beforeAll(async () => {
  it = await startConversation();
  it.when("hang", { kind: "hang" });
  it.when("begin", { kind: "text", tokens: ["Once", " upon"], delayMs: 1, ending: "hang" });
});
afterAll(() => it.stop());
beforeEach(() => it.begin());

const history = async (): Promise<string[]> =>
  (await it.person.ask("GET", it.at("/messages"))).body.data.map(
    ({ role, message, finishReason }: { role: string; message: string; finishReason: string | null }) =>
      `${role}: ${message}${finishReason === null ? "" : ` (${finishReason})`}`,
  );

test("a run's record shows its progress", async () => {
  const runId = await it.queue("begin");
  await it.until("message.delta", runId);
  const running = (await it.run(runId)).body;
  expect(running).toEqual({
    runId,
    conversationId: it.agent.replace("agt_", "conv_"),
    status: "running",
    origin: { type: "user", id: null },
    model: "openai:mock",
    waitingFor: null,
    error: null,
    steps: 1,
    createdAt: expect.any(String),
    startedAt: expect.any(String),
    finishedAt: null,
    usage: null,
  });
  await it.cancel(runId);
  const { body } = await it.send("hi");
  const done = (await it.run(body.runId)).body;
  expect(done).toMatchObject({
    status: "completed",
    steps: 1,
    usage: { promptTokens: 12, completionTokens: 3, totalTokens: 15 },
  });
  expect(done.createdAt <= done.startedAt && done.startedAt <= done.finishedAt).toBe(true);
});

test("a run whose model's server counts no tokens has a usage of none, as its answer has", async () => {
  const usage = { prompt_tokens: 0, completion_tokens: 0 };
  it.when("free", { kind: "text", tokens: ["Here you are."], usage });
  const { body } = await it.send("free");
  const none = { promptTokens: 0, completionTokens: 0, totalTokens: 0 };
  expect(body.usage).toEqual(none);
  expect((await it.run(body.runId)).body.usage).toEqual({ ...none, cachedTokens: 0, cost: null });
});

test("one run at a time, first come first served", async () => {
  const first = await it.queue("hang");
  await it.until("run.started", first);
  const rest = [await it.queue("a"), await it.queue("b"), await it.queue("c")];
  for (const runId of rest) expect((await it.run(runId)).body.status).toBe("queued");
  await it.cancel(first);
  const frames = await it.until("run.completed", rest[2]);
  const course = frames
    .filter(({ event }) => ["run.started", "run.completed", "run.cancelled"].includes(event))
    .map(({ event, data }) => `${event} ${[first, ...rest].indexOf(data.runId)}`);
  expect(course.slice(-8)).toEqual([
    "run.started 0",
    "run.cancelled 0",
    "run.started 1",
    "run.completed 1",
    "run.started 2",
    "run.completed 2",
    "run.started 3",
    "run.completed 3",
  ]);
});

test("32 messages may wait behind the run in progress, even if all arrive at once; the next is 429", async () => {
  // Whichever arrives first is in progress, and none of them ends.
  const texts = Array(34).fill("hang");
  const prefer = { Prefer: "respond-async" };
  const answers = await Promise.all(texts.map((text) => it.send(text, {}, prefer)));
  const statuses = answers.map(({ status }) => status).sort();
  expect(statuses).toEqual([...Array(33).fill(202), 429]);
  const { headers, body } = await it.send("one more", {}, prefer);
  expect(body.error).toMatchObject({ code: "rate_limited", status: 429 });
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await it.person.ask("GET", it.at("/messages?limit=100"))).body.data).toHaveLength(33);
  // They would each be answered with silence, a minute long, and ask the next tests' model.
  await it.person.ask("DELETE", it.at("/messages"));
});

test("cancelling keeps the text so far, and the plain request gets it", async () => {
  const pending = it.send("begin");
  const frames = await it.until("message.delta");
  const { runId } = frames.at(-1)?.data ?? {};
  await it.until("message.delta", runId);
  const { status, body } = await it.cancel(runId);
  expect(status).toBe(200);
  expect(body).toMatchObject({ runId, status: "cancelled", error: null, finishedAt: expect.any(String) });
  const answer = await pending;
  expect(answer.status).toBe(200);
  expect(answer.body).toMatchObject({ role: "agent", runId, finishReason: "cancelled" });
  const all = await it.until("run.cancelled", runId);
  expect(answer.body.message).toBe(shownText(all, runId));
  expect(answer.body.message).toStartWith("Once");
  expect(await history()).toEqual(["user: begin", `agent: ${answer.body.message} (cancelled)`]);
  expect(kindsOf(all.filter(({ data }) => data.runId === runId)).slice(-2)).toEqual([
    "message.completed",
    "run.cancelled",
  ]);
});

test("a queued run is cancelled without an answer, and its message is in the history", async () => {
  const first = await it.queue("hang");
  const pending = it.send("waiting");
  await using events = await it.events(0);
  const queued = await events.until(({ event, data }) => event === "run.queued" && data.runId !== first);
  const second = queued.at(-1)?.data.runId;
  expect((await it.cancel(second)).body).toMatchObject({ status: "cancelled", startedAt: null, steps: 0 });
  expect((await pending).body).toMatchObject({ message: "", finishReason: "cancelled", usage: null });
  expect((await it.run(first)).body.status).toBe("running");
  await it.cancel(first);
  expect(await history()).toEqual(["user: hang", "user: waiting", "agent:  (cancelled)", "agent:  (cancelled)"]);
});

test("cancelling an ended run changes nothing", async () => {
  const { body } = await it.send("hi");
  const before = (await it.run(body.runId)).body;
  expect((await it.cancel(body.runId)).body).toEqual(before);
  expect((await it.run(body.runId)).body).toEqual(before);
  expect(await history()).toEqual(["user: hi", "agent: Hello, world (stop)"]);
});

test("nothing follows a run's end, however late the model answers", async () => {
  it.when("chatter", { kind: "text", tokens: Array(400).fill("x"), delayMs: 1, ending: "hang" });
  for (let round = 0; round < 5; round++) {
    const runId = await it.queue("chatter");
    await it.until("message.delta", runId);
    await it.cancel(runId);
    await it.send("hi");
    const own = (await it.until("run.cancelled", runId)).filter(({ data }) => data.runId === runId);
    expect(own.at(-1)?.event).toBe("run.cancelled");
    const later = await it.events(own.at(-1)?.id);
    const behind = await later.until(({ event }) => event === "run.completed");
    await later.close();
    expect(behind.filter(({ data }) => data.runId === runId)).toEqual([]);
    expect(own.at(-2)?.data.message.message).toBe(shownText(own));
  }
});

test("many cancellations of one run end it once", async () => {
  const runId = await it.queue("begin");
  await it.until("message.delta", runId);
  const answers = await Promise.all(Array.from({ length: 8 }, () => it.cancel(runId)));
  expect(new Set(answers.map(({ body }) => body.status))).toEqual(new Set(["cancelled"]));
  await it.send("hi");
  const ends = (await it.until("run.completed")).filter(({ event }) =>
    /^run\.(completed|failed|cancelled)$/.test(event),
  );
  expect(ends.filter(({ data }) => data.runId === runId)).toHaveLength(1);
});

test("a client that disconnects cancels nothing", async () => {
  const left = Promise.withResolvers<void>();
  it.when("slow", { kind: "text", tokens: ["one", " two", " three"], after: left.promise });
  const stream = await it.stream("slow");
  const [queued] = await stream.until(({ event }) => event === "run.started");
  await stream.close();
  const abort = new AbortController();
  const plain = fetch(new URL(it.at("/messages"), it.server.url), {
    method: "POST",
    headers: { Authorization: `Bearer ${it.person.token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ message: "slow" }),
    signal: abort.signal,
  });
  await it.until("run.queued", undefined, ({ data }) => data.runId !== queued?.data.runId);
  abort.abort();
  await expect(plain).rejects.toThrow();
  left.resolve();
  const last = await it.queue("hi");
  await it.until("run.completed", last);
  const answers = (await history()).filter((line) => line.startsWith("agent"));
  expect(answers).toEqual(["agent: one two three (stop)", "agent: one two three (stop)", "agent: Hello, world (stop)"]);
});

test("stopping the instance cancels its runs, and the plain requests are answered", async () => {
  // Whichever arrives first is in progress.
  const pending = Array.from({ length: 3 }, () => it.send("begin"));
  await using events = await it.events(0);
  await events.until(() =>
    ["run.queued", "message.delta"].every(
      (kind, i) => kindsOf(events.frames).filter((one) => one === kind).length >= 3 - 2 * i,
    ),
  );
  expect((await it.person.ask("POST", `/v1/instances/${it.instance}/stop`)).body.status).toBe("stopped");
  const answers = await Promise.all(pending);
  expect(answers.map(({ status, body }) => [status, body.finishReason])).toEqual(Array(3).fill([200, "cancelled"]));
  const texts = answers.map(({ body }) => body.message).sort();
  expect(texts).toEqual(["", "", expect.stringMatching(/^Once/)]);
  await it.person.ask("POST", `/v1/instances/${it.instance}/start`);
  expect((await it.send("hi")).status).toBe(200);
  const statuses = (await it.until("run.completed")).filter(({ event }) => event === "instance.status");
  expect(statuses.map(({ data }) => data.status).slice(-2)).toEqual(["stopped", "running"]);
});

test("a change of the agent applies to the next run, not to the one in progress", async () => {
  await it.person.ask("PATCH", it.at(""), { files: { "SOUL.md": "before" } });
  it.when("hold", { kind: "text", tokens: ["x"], headDelayMs: 200 });
  const asked = it.modelAsked("hold");
  const running = it.send("hold");
  await asked;
  await it.person.ask("PATCH", it.at(""), { files: { "SOUL.md": "after" }, displayName: "Ada II" });
  expect((await running).status).toBe(200);
  expect(it.mock.requests.at(-1)?.body.messages[0].content).toContain("before");
  await it.send("hi");
  const { content } = it.mock.requests.at(-1)?.body.messages[0] ?? {};
  expect(content).toContain("after");
  expect(content).toStartWith("You are Ada II.");
  const { data } = (await it.until("agent.updated")).at(-1) ?? {};
  expect(data).toMatchObject({ type: "agent.updated", agentId: it.agent });
  expect("runId" in data).toBe(false);
});

test("deleting the agent answers pending requests, and ends its streams", async () => {
  const agent = await it.newAgent({ name: "Gone" });
  const path = `/v1/instances/${it.instance}/agents/${agent}`;
  const stream = readEvents(await it.person.fetch("GET", `${path}/events`));
  const pending = it.person.ask("POST", `${path}/messages`, { message: "begin" });
  await stream.until(({ event }) => event === "message.delta");
  await it.person.ask("DELETE", path);
  const { status, body } = await pending;
  expect(status).toBe(200);
  expect(body).toMatchObject({ finishReason: "cancelled", agentId: agent });
  const frames = await stream.rest();
  expect(kindsOf(frames).slice(-3)).toEqual(["message.completed", "run.cancelled", "agent.deleted"]);
  expect((await it.person.ask("GET", `${path}/messages`)).status).toBe(404);
});
