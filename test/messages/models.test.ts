import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { pino } from "pino";
import type { MockAnswer } from "../support/mock-model-server.ts";
import { type Conversation, kindsOf, startConversation } from "./conversation.ts";

let it: Conversation;
const lines: string[] = [];
beforeAll(async () => {
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
  const settings = { ROOST_MODELS: "qwen3:4b, openai:big", ROOST_ANSWER_TOKENS: "300" };
  it = await startConversation(settings, log);
});
afterAll(() => it.stop());
beforeEach(() => it.begin());

const askedLast = () => it.mock.requests.at(-1)?.body;
const refusal =
  "model: expected local:<name> or openai:mock or openai:qwen3:4b or openai:big, or null for the host's default";

test("an agent may use the models that the operator allows, the host's own and the local ones", async () => {
  for (const model of ["openai:mock", "openai:qwen3:4b", "openai:big", "local:nothing-here", null]) {
    const path = `/v1/instances/${it.instance}/agents`;
    expect((await it.person.ask("POST", path, { name: "Ada", model })).status).toBe(201);
    expect((await it.person.ask("PATCH", it.at(""), { model })).body.model).toBe(model);
  }
  await it.person.ask("PATCH", it.at(""), { model: "openai:big" });
  await it.send("hi");
  expect(askedLast().model).toBe("big");
});

test("any other model is 400 for POST and PATCH, before later checks, and nothing changes", async () => {
  const path = `/v1/instances/${it.instance}/agents`;
  const { slug } = (await it.person.ask("GET", it.at(""))).body;
  for (const model of ["openai:gpt-huge", "openai:BIG", "openai:qwen3", "openai:big,mock"]) {
    const made = await it.person.ask("POST", path, { name: "Ada", slug, model });
    expect([made.status, made.body.error.message]).toEqual([400, refusal]);
    const changed = await it.person.ask("PATCH", it.at(""), { model, name: "Eve" });
    expect([changed.status, changed.body.error.message]).toEqual([400, refusal]);
  }
  expect((await it.person.ask("GET", it.at(""))).body).toMatchObject({ name: "Ada", model: null });
});

test("an agent whose model was forbidden later fails with model_error, and no server is called", async () => {
  const { store } = it.server.foundation;
  store.transaction(() => {
    store.sqlite.run("UPDATE agents SET model = 'openai:gpt-huge' WHERE agent_id = ?", [it.agent]);
  });
  const before = it.mock.requests.length;
  const { status, body } = await it.send("hi");
  expect([status, body.error.code]).toEqual([502, "model_error"]);
  expect(body.error.message).toContain('does not offer the model "openai:gpt-huge": choose another');
  expect(it.mock.requests.length).toBe(before);
});

test("every request limits the answer to the length that the operator pays for", async () => {
  await it.send("hi");
  expect(askedLast().max_tokens).toBe(300);
});

test("a server that refuses answers of that length is asked for shorter ones from then on", async () => {
  await it.person.ask("PATCH", it.at(""), { model: "openai:qwen3:4b" });
  const message =
    "This model's maximum context length is 400 tokens. However, you requested 412 tokens (112 in the messages, 300 in the completion).";
  it.when("shorter", { kind: "status", status: 400, body: { error: { message } } }, { kind: "text", tokens: ["ok"] });
  expect((await it.send("shorter")).body.message).toBe("ok");
  expect(askedLast().max_tokens).toBe(100);
  await it.send("hi");
  expect(askedLast().max_tokens).toBe(100);
});

test("a model server's message goes to the operator's log under the run's id, and to no tenant", async () => {
  const said = (code: number): MockAnswer => ({
    kind: "status",
    status: code,
    body: {
      error: { message: `organisation org-acme-1234 on gpu-7.internal: no, not "what I asked of the model" (${code})` },
    },
  });
  const failures: [string, MockAnswer][] = [
    ...[400, 401, 403, 404, 422, 302].map((code): [string, MockAnswer] => [
      `what I asked of the model ${code}`,
      said(code),
    ]),
    [
      "what I asked of a stream",
      { kind: "raw", chunks: ['data: {"error":{"message":"org-acme-1234 is out of memory"}}\n\n'] },
    ],
    ["what I asked of a page", { kind: "raw", chunks: ["<html>gpu-7.internal</html>"] }],
    ["what I asked of a cut", { kind: "text", tokens: ["half"], ending: "cut" }],
  ];
  const { host, port } = new URL(it.mock.url);
  const seen: string[] = [];
  for (const [text, answer] of failures) {
    it.when(text, answer);
    lines.length = 0;
    await using stream = await it.stream(text);
    const frames = await stream.rest();
    expect(kindsOf(frames).at(-1)).toBe("run.failed");
    const runId: string = frames.at(-1)?.data.runId;
    const line = lines.map((entry) => JSON.parse(entry)).find((entry) => entry.runId === runId);
    const { msg, instanceId, detail } = line;
    expect([msg, instanceId]).toEqual(["a model failed", it.instance]);
    expect(detail).toContain(host);
    expect(frames.at(-1)?.data.error.message).toContain(runId);
    // The response, the stream, the run and the history: everything about it that a tenant can read.
    seen.push(JSON.stringify((await it.send(text)).body), stream.text(), JSON.stringify((await it.run(runId)).body));
    if (text.endsWith("400")) expect(detail).toContain("organisation org-acme-1234 on gpu-7.internal: no, not ");
    expect(detail).not.toContain("what I asked");
  }
  await using log = await it.events(0);
  await log.until(({ event }) => event === "run.failed");
  seen.push(log.text(), JSON.stringify((await it.person.ask("GET", it.at("/messages"))).body));
  const secrets = [host, `:${port}`, "acme", "gpu-7", "memory", "ROOST_", "127.0.0.1"];
  expect(secrets.filter((secret) => seen.some((text) => text.includes(secret)))).toEqual([]);
});
