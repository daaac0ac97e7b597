import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type Conversation, kindsOf, startConversation } from "./conversation.ts";

let it: Conversation;
beforeAll(async () => {
  it = await startConversation();
});
afterAll(() => it.stop());
beforeEach(() => it.begin());

const status = (code: number) => ({ kind: "status", status: code }) as const;
const requestsFor = (text: string): number =>
  it.mock.requests.filter(({ body }) => body.messages.at(-1).content === text).length;

test("a model's refusal is 502 model_error at once, and run.failed in the stream", async () => {
  for (const code of [400, 401, 404, 422]) {
    it.when(`refused ${code}`, status(code));
    const { status: answered, body } = await it.send(`refused ${code}`);
    expect([code, answered, body.error.code]).toEqual([code, 502, "model_error"]);
  }
  expect(requestsFor("refused 401")).toBe(1);
  it.when("refused", status(403));
  await using stream = await it.stream("refused");
  const frames = await stream.rest();
  expect(kindsOf(frames)).toEqual(["run.queued", "run.started", "run.failed"]);
  expect(frames.at(-1)?.data.error).toEqual({ code: "model_error", message: expect.any(String) });
  const run = (await it.run(frames[0]?.data.runId)).body;
  expect(run).toMatchObject({ status: "failed", error: frames.at(-1)?.data.error });
  const { data } = (await it.person.ask("GET", it.at("/messages"))).body;
  expect(data.map(({ role }: { role: string }) => role)).toEqual(Array(5).fill("user"));
});

test("a model that is unavailable is retried twice; if it stays so, the run fails", async () => {
  it.when("moment", status(503), status(429), { kind: "text", tokens: ["back"] });
  it.when("away", status(500));
  const [moment, away] = await Promise.all([
    it.send("moment"),
    (async () => {
      const agent = await it.newAgent({ name: "Second" });
      const path = `/v1/instances/${it.instance}/agents/${agent}/messages`;
      return await it.person.ask("POST", path, { message: "away" });
    })(),
  ]);
  expect(moment.body.message).toBe("back");
  expect(requestsFor("moment")).toBe(3);
  expect([away.status, away.body.error.code]).toEqual([502, "model_error"]);
  expect(requestsFor("away")).toBe(3);
});

test("an answer that breaks off is not retried; its text is kept", async () => {
  it.when("cut", { kind: "text", tokens: ["half", " an"], delayMs: 1, ending: "cut" });
  const { status: answered, body } = await it.send("cut");
  expect([answered, body.error.code]).toEqual([502, "model_error"]);
  await using stream = await it.stream("cut");
  const frames = await stream.rest();
  expect(kindsOf(frames).slice(-2)).toEqual(["message.completed", "run.failed"]);
  expect(frames.at(-2)?.data.message).toMatchObject({ message: "half an", finishReason: "error" });
  expect(requestsFor("cut")).toBe(2);
  const { data } = (await it.person.ask("GET", it.at("/messages"))).body;
  expect(data.map((one: { message: string; finishReason: string }) => [one.message, one.finishReason])).toEqual([
    ["cut", null],
    ["half an", "error"],
    ["cut", null],
    ["half an", "error"],
  ]);
});

test("for a model that does not exist, the error says what to configure, and the next message is answered", async () => {
  await it.person.ask("PATCH", it.at(""), { model: "local:nothing-here" });
  const { status: answered, body } = await it.send("hi");
  expect([answered, body.error.code]).toEqual([502, "model_error"]);
  expect(body.error.message).toContain("nothing-here");
  await it.person.ask("PATCH", it.at(""), { model: null });
  expect((await it.send("hi")).status).toBe(200);
});

test("a tool is called, and its result goes to the model and to the stream", async () => {
  it.when(
    "time?",
    {
      kind: "tools",
      text: "Let me look. ",
      calls: [{ id: "c1", name: "now", arguments: { timeZone: "Europe/Oslo" } }],
    },
    { kind: "text", tokens: ["It is late."] },
  );
  await using stream = await it.stream("time?");
  const frames = await stream.rest();
  expect(kindsOf(frames)).toEqual([
    "run.queued",
    "run.started",
    "message.delta",
    "tool.started",
    "tool.completed",
    "message.delta",
    "message.completed",
    "run.completed",
  ]);
  const [started, completed] = frames.filter(({ event }) => event.startsWith("tool."));
  expect(started?.data).toMatchObject({ toolCallId: "c1", name: "now", input: { timeZone: "Europe/Oslo" } });
  expect(completed?.data).toMatchObject({ toolCallId: "c1", name: "now", isError: false });
  expect(completed?.data.output).toMatch(/\d{4}-\d\d-\d\dT/);
  expect(frames.at(-2)?.data.message.message).toBe("Let me look. \n\nIt is late.");
  const { messages, tools } = it.mock.requests.at(-1)?.body ?? {};
  expect(tools.map(({ function: { name } }: { function: { name: string } }) => name)).toContain("now");
  expect(messages.at(-1)).toEqual({ role: "tool", tool_call_id: "c1", content: completed?.data.output });
  expect((await it.run(frames[0]?.data.runId)).body.steps).toBe(2);
});

test("the model is told about an invalid tool call, and the run continues", async () => {
  it.when(
    "wrong",
    {
      kind: "tools",
      calls: [
        { id: "a", name: "launch_rocket", arguments: {} },
        { id: "b", name: "now", arguments: { timeZone: "Mars/Base" } },
        { id: "c", name: "now", arguments: "{not json" },
      ],
    },
    { kind: "text", tokens: ["sorry"] },
  );
  await using stream = await it.stream("wrong");
  const done = (await stream.rest()).filter(({ event }) => event === "tool.completed").map(({ data }) => data);
  expect(done.map(({ isError }) => isError)).toEqual([true, true, true]);
  expect(done[0].output).toContain('no tool "launch_rocket"');
  expect(done[1].output).toContain("IANA time zone");
  expect(done[2].output).toContain("not valid JSON");
  expect(stream.frames.at(-1)?.event).toBe("run.completed");
  expect(stream.frames.findLast(({ data }) => data.toolCallId === "c")?.data).toBeDefined();
});
