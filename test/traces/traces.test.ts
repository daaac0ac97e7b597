import { afterEach, expect, test } from "bun:test";
import { createTraces } from "../../src/traces/otel.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from "../support/otlp-receiver.ts";
import { scriptedTool } from "../support/scripted-tools.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

interface World {
  collector: OtlpReceiver;
  mock: ReturnType<typeof startMockModelServer>;
  server: TestServer;
  person: Person;
  instanceId: string;
  agentId: string;
  /** The agent's path. */
  at: string;
}

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

const look = scriptedTool("look_up", "nothing", async ({ key }) => `found ${key} for hidden-in-plain-sight`);

async function world(settings: Record<string, string> = {}): Promise<World> {
  const collector = startOtlpReceiver();
  cleanups.push(collector.stop);
  const mock = startMockModelServer();
  cleanups.push(mock.stop);
  const server = await startTestServer(
    {
      ROOST_MODEL: "openai:mock",
      ROOST_OPENAI_BASE_URL: mock.url,
      ROOST_OPENAI_API_KEY: "sk-not-for-the-collector",
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_TIMEOUT: "30000",
      OTEL_EXPORTER_OTLP_HEADERS: "x-collector-key=only%20for%20it",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
      ...settings,
    },
    { moreTools: [look] },
  );
  cleanups.push(server.stop);
  const person = await server.signUp("somebody@example.com");
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "home" })).body;
  await person.ask("POST", `/v1/instances/${instanceId}/secrets`, { key: "TOKEN", value: "hidden-in-plain-sight" });
  const agents = `/v1/instances/${instanceId}/agents`;
  const { agentId } = (await person.ask("POST", agents, { name: "Ada", files: { "SOUL.md": "You are the soul." } }))
    .body;
  return { collector, mock, server, person, instanceId, agentId, at: `${agents}/${agentId}` };
}

const named = (spans: readonly ReceivedSpan[], name: string) => spans.filter((span) => span.name === name);
const isRunOf = (runId: string) => (span: ReceivedSpan) =>
  span.name === "invoke_agent" && span.attributes["roost.run.id"] === runId;

/** Sends a message whose answer calls a tool, and returns its run's id once all of its spans have arrived. */
async function talk({ mock, person, at, collector }: World, headers: Record<string, string> = {}) {
  mock.script(
    { kind: "tools", calls: [{ id: "call_7", name: "look_up", arguments: { key: "the-key" } }] },
    { kind: "text", tokens: ["I ", "know."], usage: { prompt_tokens: 20, completion_tokens: 4 } },
  );
  const { body } = await person.ask("POST", `${at}/messages?token=in-the-query`, { message: "my-question" }, headers);
  const { runId } = (await person.ask("GET", `${at}/runs`)).body.data[0];
  expect(body.message).toBe("I know.");
  const spans = await collector.until(isRunOf(runId));
  await collector.until(({ attributes }) => attributes["roost.run.id"] === runId && "http.route" in attributes);
  return { runId: runId as string, spans };
}

test("a run is a trace by its own id, with its model and tool calls, linked to the request that caused it", async () => {
  const here = await world();
  const { runId, spans } = await talk(here, { "X-Request-Id": "asked-1" });
  const run = spans.find(isRunOf(runId)) as ReceivedSpan;
  const request = spans.find(({ attributes }) => attributes["roost.request.id"] === "asked-1") as ReceivedSpan;
  expect(run.traceId).toBe(runId.slice(-32));
  expect(run.parentSpanId).toBe("");
  expect(run.links).toEqual([{ traceId: request.traceId, spanId: request.spanId }]);
  expect(request.traceId).not.toBe(run.traceId);
  const inside = spans.filter(({ parentSpanId }) => parentSpanId === run.spanId);
  expect(inside.map(({ name }) => name)).toEqual(["chat mock", "execute_tool look_up", "chat mock"]);
  expect(inside.map(({ traceId }) => traceId)).toEqual(Array(3).fill(run.traceId));
  expect(inside.map(({ kind }) => kind)).toEqual([3, 1, 3]);
  expect(spans.every(({ status }) => status === 0)).toBe(true);
});

test("attributes follow the pinned conventions", async () => {
  const here = await world();
  const { runId, spans } = await talk(here);
  const run = spans.find(isRunOf(runId)) as ReceivedSpan;
  expect(run.attributes).toEqual({
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "mock",
    "gen_ai.agent.id": here.agentId,
    "gen_ai.conversation.id": expect.stringMatching(/^conv_/),
    "gen_ai.usage.input_tokens": 29,
    "gen_ai.usage.output_tokens": 11,
    "roost.run.id": runId,
    "roost.instance.id": here.instanceId,
    "roost.account.id": here.person.accountId,
    "roost.run.outcome": "completed",
  });
  const [first, last] = named(spans, "chat mock");
  expect(first?.attributes["gen_ai.response.finish_reasons"]).toEqual(["tool_calls"]);
  expect(last?.attributes).toEqual({
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "mock",
    "gen_ai.request.max_tokens": 4_096,
    "gen_ai.response.model": "mock",
    "gen_ai.response.finish_reasons": ["stop"],
    "gen_ai.response.time_to_first_chunk": expect.any(Number),
    "gen_ai.usage.input_tokens": 20,
    "gen_ai.usage.output_tokens": 4,
    "server.address": "127.0.0.1",
    "server.port": here.mock.port,
  });
  expect(Number(last?.attributes["gen_ai.response.time_to_first_chunk"])).toBeGreaterThan(0);
  expect(named(spans, "execute_tool look_up")[0]?.attributes).toEqual({
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "look_up",
    "gen_ai.tool.type": "function",
    "gen_ai.tool.call.id": "call_7",
    "roost.tool.outcome": "done",
  });
  const route = "/v1/instances/:instanceId/agents/:agentId/messages";
  expect(named(spans, `POST ${route}`)[0]?.attributes).toEqual({
    "http.request.method": "POST",
    "http.route": route,
    "http.response.status_code": 200,
    "url.scheme": "http",
    "roost.request.id": expect.any(String),
    "roost.account.id": here.person.accountId,
    "roost.run.id": runId,
  });
  expect([...new Set(spans.map(({ schemaUrl }) => schemaUrl))]).toEqual(["https://opentelemetry.io/schemas/1.41.0"]);
  expect(run.resource).toMatchObject({ "service.name": "roost", "deployment.environment.name": "test" });
  expect(here.collector.headers[0]?.get("x-collector-key")).toBe("only for it");
});

test("nothing that was said, and no secret, query or name, reaches the collector", async () => {
  const here = await world();
  await talk(here);
  const words = ["my-question", "I know", "the-key", "found", "soul", "hidden-in-plain-sight", "in-the-query", "Ada"];
  const secrets = [here.person.token, "somebody@", "sk-not-for", "only for it"];
  const all = here.collector.raw.join("");
  expect([...words, ...secrets].filter((text) => all.includes(text))).toEqual([]);
});

test("what was said is sent if the operator says so, bounded, and without the instance's secrets", async () => {
  const here = await world({ OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true" });
  const { mock, person, at, collector } = here;
  await person.ask("POST", `${at}/messages`, { message: `hidden-in-plain-sight ${"long ".repeat(4_000)}` });
  const { runId } = await talk(here);
  const spans = await collector.until(
    (span) => span.name === "chat mock" && String(span.attributes["gen_ai.output.messages"]).includes("know"),
  );
  const inside = spans.filter(({ traceId }) => traceId === runId.slice(-32));
  const last = named(inside, "chat mock").find(({ attributes }) =>
    String(attributes["gen_ai.output.messages"]).includes("know"),
  );
  expect(JSON.parse(String(last?.attributes["gen_ai.output.messages"]))).toEqual([
    { role: "assistant", parts: [{ type: "text", content: "I know." }], finish_reason: "stop" },
  ]);
  const input = JSON.parse(String(last?.attributes["gen_ai.input.messages"]));
  expect(input.at(-1)).toMatchObject({ role: "tool", parts: [{ type: "tool_call_response", id: "call_7" }] });
  expect(JSON.stringify(input)).toContain("my-question");
  expect(String(last?.attributes["gen_ai.system_instructions"])).toContain("soul");
  const tool = named(inside, "execute_tool look_up")[0]?.attributes;
  expect(tool?.["gen_ai.tool.call.arguments"]).toBe('{"key":"the-key"}');
  expect(tool?.["gen_ai.tool.call.result"]).toContain("found the-key");
  const longest = spans.flatMap(({ attributes }) => Object.values(attributes)).map((value) => String(value).length);
  expect(Math.max(...longest)).toBeLessThan(17_000);
  expect(mock.requests.some(({ body }) => JSON.stringify(body).includes("hidden-in-plain-sight"))).toBe(true);
  expect(collector.raw.join("")).not.toContain("hidden-in-plain-sight");
});

test("an instance's secrets are read once for a call's content, and no more of a prompt is searched than is shown", async () => {
  let [read, searched] = [0, 0];
  const collector = startOtlpReceiver();
  cleanups.push(collector.stop);
  const traces = createTraces({
    ...{ url: `${collector.url}/v1/traces`, headers: {}, timeoutMs: 30_000, onFailure() {} },
    ...{ serviceName: "roost", version: "0", resource: {}, ratio: 1 },
    async redactor() {
      read++;
      return async (text) => {
        searched++;
        return text;
      };
    },
  });
  const ids = { runId: "run_1", agentId: "agt_1", conversationId: "conv_1", instanceId: "inst_1", accountId: "acc_1" };
  const run = traces.run({ ...ids, model: "openai:mock" });
  const messages = Array.from({ length: 500 }, () => ({ role: "user" as const, content: "long ".repeat(400) }));
  const answer = { text: "I know.", toolCalls: [], promptTokens: 1, completionTokens: 1, finish: "stop" };
  run.model({ messages }).end({ ...answer, model: null, server: null, firstMs: null, error: null });
  await collector.until(({ name }) => name === "chat mock");
  expect(read).toBe(1);
  expect(searched).toBeLessThan(12);
  await traces.close();
});

test("a caller's trace is linked, never joined, and decides nothing; strangers' are ignored", async () => {
  const here = await world();
  const theirs = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
  const { runId, spans } = await talk(here, { traceparent: theirs, "X-Request-Id": "with-trace" });
  await here.server.ask("GET", "/v1/auth/me", { headers: { traceparent: theirs, "X-Request-Id": "stranger" } });
  const stranger = (span: ReceivedSpan) => span.attributes["roost.request.id"] === "stranger";
  await here.collector.until(stranger);
  const request = spans.find(({ attributes }) => attributes["roost.request.id"] === "with-trace");
  expect(request?.links).toEqual([{ traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" }]);
  expect(request?.traceId).not.toBe("4bf92f3577b34da6a3ce929d0e0e4736");
  expect(request?.parentSpanId).toBe("");
  expect(here.collector.spans.find(stranger)?.links).toEqual([]);
  // The operator's own model server is told of the model call, and of nothing else.
  const chats = named(spans, "chat mock").filter(({ traceId }) => traceId === runId.slice(-32));
  const passed = here.mock.requests.slice(-2).map(({ headers }) => headers.traceparent);
  expect(passed).toEqual(chats.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`));
});

test("a failed call and its run are errors, and say of which kind", async () => {
  const { mock, person, at, collector } = await world();
  mock.script({ kind: "status", status: 400, body: { error: { message: "the-server-says" } } });
  expect((await person.ask("POST", `${at}/messages`, { message: "hi" })).status).toBe(502);
  const spans = await collector.until(({ attributes }) => attributes["http.response.status_code"] === 502);
  const failed = spans.filter(({ status }) => status === 2);
  expect(failed.map(({ name, attributes }) => [name, attributes["error.type"]]).toSorted()).toEqual([
    ["POST /v1/instances/:instanceId/agents/:agentId/messages", "model_error"],
    ["chat mock", "rejected"],
    ["invoke_agent", "model_error"],
  ]);
  expect(collector.raw.join("")).not.toContain("the-server-says");
});

test("of a model server that an instance brings, a trace tells the name and nothing else", async () => {
  const own = startMockModelServer();
  cleanups.push(own.stop);
  const { person, at, instanceId, collector, mock } = await world({ ROOST_EGRESS: `127.0.0.1:${own.port}` });
  const secrets = { OPENAI_BASE_URL: `${own.url}?in-the-url=1`, OPENAI_API_KEY: "in-the-key" };
  await person.ask("POST", `/v1/instances/${instanceId}/secrets`, { secrets });
  expect((await person.ask("POST", `${at}/messages`, { message: "hi" })).status).toBe(200);
  expect([own.requests.length, mock.requests.length]).toEqual([1, 0]);
  const spans = await collector.until(({ attributes }) => "roost.run.outcome" in attributes);
  expect(named(spans, "chat mock").map(({ attributes }) => attributes["server.address"])).toEqual(["127.0.0.1"]);
  expect(collector.raw.join("")).not.toContain("server.port");
  expect(collector.raw.join("")).not.toContain("in-the-");
});

test("the sampler decides by the trace, and a run that is not recorded is not told to the model server", async () => {
  const here = await world({ OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" });
  await here.person.ask("POST", `${here.at}/messages`, { message: "hi" });
  const { requests } = here.mock;
  await here.server.stop();
  cleanups.pop();
  expect(here.collector.spans).toEqual([]);
  expect(requests.at(-1)?.headers.traceparent).toBeUndefined();
});

test("spans that are left are sent at the stop", async () => {
  const here = await world();
  await here.person.ask("GET", "/v1/auth/me", undefined, { "X-Request-Id": "the-last" });
  await here.server.stop();
  cleanups.pop();
  // On a busy machine the stop may go on before the collector here has read them.
  await here.collector.until(({ attributes }) => attributes["roost.request.id"] === "the-last");
});

test.each([["never" as const], [500]])(
  "a collector that answers %p harms nothing, and the lost spans are counted",
  async (how) => {
    const here = await world({ OTEL_EXPORTER_OTLP_TIMEOUT: "100" });
    here.collector.answerWith(how);
    const { person, server, at } = here;
    expect((await person.ask("POST", `${at}/messages`, { message: "hi" })).body.message).toBe(
      "Hello, I am the mock model.",
    );
    const dropped = async () => {
      const { body } = await server.ask("GET", "/metrics");
      return Number(/^roost_spans_total\{outcome="dropped"\} (\d+)/m.exec(body)?.[1] ?? 0);
    };
    while ((await dropped()) === 0) await person.ask("GET", "/v1/auth/me");
    expect((await person.ask("GET", `${at}/runs`)).body.data[0].status).toBe("completed");
  },
);

test("spans wait for a slow collector up to a bound; what is beyond it is dropped and counted", async () => {
  const collector = startOtlpReceiver();
  cleanups.push(collector.stop);
  collector.answerWith("never");
  const traces = createTraces({
    ...{ url: `${collector.url}/v1/traces`, headers: {}, timeoutMs: 30_000, onFailure() {} },
    ...{ serviceName: "roost", version: "0", resource: {}, ratio: 1, redactor: null },
  });
  for (let at = 0; at < 3_000; at++) {
    const request = traces.request({ method: "GET", route: "/v1/auth/me", requestId: String(at), traceparent: null });
    request.end({ status: 200, accountId: null, runId: null, error: null });
  }
  expect(traces.figures()).toEqual({ sent: 0, dropped: 952 });
  await traces.close();
});
