import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Conversation, kindsOf, shownText, startConversation } from "./conversation.ts";

const output = {
  schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false },
};

let it: Conversation;
beforeAll(async () => {
  it = await startConversation();
});
afterAll(() => it.stop());

const text = (...tokens: string[]) => ({ kind: "text" as const, tokens });

test("a message with output is answered with JSON that fits, repaired if need be, and shown only then", async () => {
  it.mock.script(text("Paris, of course"), text('{"city":', '"Paris"}'));
  const { status, body } = await it.send("Where is the Louvre?", { output });
  expect([status, body.message]).toEqual([200, '{"city":"Paris"}']);
  const frames = await it.until("run.completed", body.runId);
  expect(shownText(frames)).toBe('{"city":"Paris"}');
  expect(kindsOf(frames).filter((kind) => kind === "message.delta")).toHaveLength(1);
  expect((await it.run(body.runId)).body.steps).toBe(2);
});

test("what the model says before a call leaves nothing before the JSON", async () => {
  await it.begin();
  it.mock.script(
    { kind: "tools", calls: [{ name: "now", arguments: {} }], text: "Let me look." },
    text('{"city":', '"Paris"}'),
  );
  const { status, body } = await it.send("Where is it noon?", { output });
  expect([status, body.message]).toEqual([200, '{"city":"Paris"}']);
  const frames = await it.until("run.completed", body.runId);
  expect(kindsOf(frames)).toContain("tool.completed");
  expect(shownText(frames)).toBe('{"city":"Paris"}');
});

test("one that does not fit after two repairs fails as output_invalid, and nothing of it is kept", async () => {
  await it.begin();
  it.mock.script(text("Rome"), text("{}"), text('{"city": 1}'));
  const { status, body } = await it.send("And the Colosseum?", { output });
  expect([status, body.error.code]).toEqual([502, "output_invalid"]);
  expect(body.error.message).toContain("city is not string");
  const { data } = (await it.person.ask("GET", it.at("/runs"))).body;
  expect(data).toMatchObject([{ status: "failed", error: { code: "output_invalid" }, steps: 3 }]);
});

test("a queued message keeps its form across a restart", async () => {
  await it.begin();
  it.mock.script({ kind: "hang" });
  const asked = it.modelAsked("first");
  await it.queue("first");
  await asked;
  const { body } = await it.send("second", { output }, { Prefer: "respond-async" });
  // The first is asked again, then the second.
  it.mock.script(text("done"), text('{"city":"Oslo"}'));
  await it.server.restart();
  const [frame] = (await it.until("message.completed", body.runId)).slice(-1);
  expect(frame?.data.message.message).toBe('{"city":"Oslo"}');
});

test.each([
  [{ schema: { type: "thing" } }, "output.schema: schema.type: expected one of"],
  [{ schema: "x" }, "output.schema: expected a JSON Schema"],
  [{}, "output.schema: expected"],
  [{ schema: { description: "x".repeat(17_000) } }, "output.schema: expected at most 16384 bytes"],
])("a form that cannot be checked is 400: %j", async (given, message) => {
  const { status, body } = await it.send("hi", { output: given });
  expect(status).toBe(400);
  expect(body.error.message).toStartWith(message);
});
