import { afterEach, describe, expect, test } from "bun:test";
import type { ModelRequest } from "../../src/models/engine.ts";
import { openAnswer } from "../../src/models/openai/open-answer.ts";
import { watchRequest } from "../../src/models/openai/watch.ts";
import { createOpenAiEngine } from "../../src/models/openai.ts";
import { openFullListener } from "../support/full-listener.ts";
import type { MockAnswer } from "../support/mock-model-server.ts";
import {
  ask,
  collect,
  delta,
  engine,
  failure,
  KEY,
  mock,
  QUESTION,
  raw,
  sse,
  stopServers,
  textOf,
} from "./openai-fixture.ts";

afterEach(stopServers);

describe("a request is retried", () => {
  test.each([408, 429, 500, 503])("twice after %i, waiting longer each time, and logged", async (status) => {
    const server = mock({ kind: "status", status }, { kind: "status", status });
    const told: number[] = [];
    const { stream, waits } = engine(server.url, { log: ({ attempt }) => told.push(attempt) });
    const events = await collect(stream(QUESTION, new AbortController().signal));
    expect(textOf(events)).toContain("mock model");
    expect(waits).toEqual([250, 500]);
    expect(told).toEqual([1, 2]);
  });

  test("and given up after the third failure, with the server's message", async () => {
    const overloaded = { kind: "status", status: 503, body: { error: { message: `busy\n\u0007 ${KEY}` } } } as const;
    const server = mock(overloaded, overloaded, overloaded, overloaded);
    const error = await failure(ask(server.url));
    expect(error.kind).toBe("unavailable");
    expect(error.message).not.toContain("busy");
    expect(error.detail).toContain("busy …");
    expect(server.requests.length).toBe(3);
  });

  test("when the connection is refused or reset before the first byte", async () => {
    const server = await raw((socket, attempt) => {
      if (attempt === 1) socket.reset();
      else if (attempt === 2) socket.headThenReset();
      else socket.answer(sse(delta({ content: "third" }, "stop")));
    });
    const { stream, waits } = engine(server.url);
    expect(textOf(await collect(stream(QUESTION, new AbortController().signal)))).toBe("third");
    expect(waits.length).toBe(2);

    await server.stop();
    const refused = engine(server.url);
    const error = await failure(collect(refused.stream(QUESTION, new AbortController().signal)));
    expect(error.kind).toBe("unavailable");
    expect(error.detail).toContain(`Nothing answers at ${new URL(server.url).origin}`);
    expect(refused.waits.length).toBe(2);
  });

  test.skipIf(process.platform !== "linux")("if no connection is made within its deadline", async () => {
    const host = await openFullListener();
    const { stream, waits } = engine(`http://127.0.0.1:${host.port}/v1`, { connectTimeoutMs: 60 });
    const error = await failure(collect(stream(QUESTION, new AbortController().signal)));
    host.close();
    expect(error.kind).toBe("unavailable");
    expect(error.detail).toContain("ETIMEDOUT");
    expect(waits.length).toBe(2);
  });

  test("but not if a connected server answers later than the connect timeout", async () => {
    const server = mock({ kind: "text", tokens: ["slow"], headDelayMs: 3_500 });
    expect(textOf(await ask(server.url, { connectTimeoutMs: 3_000 }))).toBe("slow");
    expect(server.requests.length).toBe(1);
  });

  test("no sooner than Retry-After says, but within 10 s", async () => {
    const server = mock(
      { kind: "status", status: 429, headers: { "Retry-After": "3" } },
      { kind: "status", status: 429, headers: { "Retry-After": "3600" } },
    );
    const { stream, waits } = engine(server.url);
    await collect(stream(QUESTION, new AbortController().signal));
    expect(waits).toEqual([3000, 10_000]);
  });

  test("never after another 4xx or a redirect", async () => {
    for (const status of [302, 400, 401, 403, 404, 422]) {
      const server = mock({ kind: "status", status, headers: { Location: "http://127.0.0.1:1/" } });
      expect((await failure(ask(server.url))).kind).toBe(status === 404 ? "unknown_model" : "rejected");
      expect(server.requests.length).toBe(1);
    }
  });

  const refused = (message: string): MockAnswer => ({ kind: "status", status: 400, body: { error: { message } } });

  test("without what the server does not support, which the next request leaves out at once", async () => {
    const server = mock(
      refused("Unrecognized field: stream_options"),
      refused("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
      refused("Unsupported value: 'temperature' does not support 0.2 with this model."),
    );
    const { stream, waits } = engine(server.url);
    const request = { ...QUESTION, maxTokens: 5, temperature: 0.2 };
    await collect(stream(request, new AbortController().signal));
    await collect(stream(request, new AbortController().signal));
    expect(waits).toEqual([]);
    expect(server.requests.length).toBe(5);
    expect(Object.keys(server.requests[4]?.body).sort()).toEqual([
      "max_completion_tokens",
      "messages",
      "model",
      "stream",
    ]);
  });

  const UNSUPPORTED =
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
  const named = (name: string): ModelRequest["tools"] => [
    { name: "ask", description: `Asks with ${name}.`, inputSchema: { properties: { [name]: { type: "integer" } } } },
  ];

  test.each([
    [UNSUPPORTED, "max_completion_tokens", { max_completion_tokens: 50 }],
    [UNSUPPORTED, "max_tokens", { max_completion_tokens: 50 }],
    [UNSUPPORTED.replaceAll("'", '"'), "max_completion_tokens", { max_completion_tokens: 50 }],
    ["the maximum context length is 80 tokens; max_tokens is 99", "max_tokens", { max_tokens: 20 }],
  ])("as %p asks, though a tool has a parameter %p, and so are the next", async (message, name, body) => {
    const server = mock(refused(message));
    const { stream } = engine(server.url);
    const signal = new AbortController().signal;
    await collect(stream({ ...QUESTION, maxTokens: 50, tools: named(name) }, signal));
    await collect(stream({ ...QUESTION, maxTokens: 50 }, signal));
    expect(server.requests.length).toBe(3);
    for (const sent of server.requests.slice(1)) expect(sent.body).toMatchObject(body);
  });

  test("as the server asks in words that the prompt has, and the next as before", async () => {
    const server = mock(refused("Unrecognized request argument supplied: stream_options"));
    const { stream } = engine(server.url);
    const signal = new AbortController().signal;
    await collect(stream({ ...QUESTION, tools: named("stream_options") }, signal));
    await collect(stream(QUESTION, signal));
    expect(server.requests.map(({ body }) => Object.keys(body).includes("stream_options"))).toEqual([
      true,
      false,
      true,
    ]);
  });

  const WORDS = [
    "stream_options: max_completion_tokens",
    "temperature is not supported; temperature\nnot supported; at most 1 completion tokens",
    "the maximum context length is 8 tokens, 4 in the completion",
  ].join("\n");
  const tool = { name: "look", description: "Looks.", inputSchema: {} };
  const output = { name: "answer", schema: {} };

  test.each<[string, Partial<ModelRequest>]>([
    ["message", { messages: [{ role: "user", content: WORDS }] }],
    ["call", { messages: [{ role: "assistant", content: "", toolCalls: [{ id: "1", name: "look", input: WORDS }] }] }],
    ["tool's description", { tools: [{ ...tool, description: WORDS }] }],
    ["tool's schema", { tools: [{ ...tool, inputSchema: { type: WORDS } }] }],
    ["tool's property", { tools: [{ ...tool, inputSchema: { properties: { [WORDS]: {} } } }] }],
    ["form's schema", { output: { ...output, schema: { type: WORDS } } }],
    ["stop word", { stop: [WORDS] }],
  ])(
    "for a tenant alone without what the server repeats of their %s: others' requests stay the same",
    async (_, theirs) => {
      const message = `unexpected value ${WORDS}`;
      const bodies = [
        `{"error":{"message":${JSON.stringify(message)}}}`,
        JSON.stringify({ detail: [{ msg: "unexpected value", input: theirs }] }),
        message,
      ];
      for (const body of bodies) {
        const server = mock({ kind: "status", status: 400, body });
        const { stream } = engine(server.url);
        const request = { ...QUESTION, maxTokens: 50, temperature: 0.2 };
        const signal = new AbortController().signal;
        await collect(stream({ ...request, ...theirs }, signal));
        await collect(stream(request, signal));
        expect(server.requests.length).toBe(3);
        expect(server.requests.at(-1)?.body).toMatchObject(WHOLE);
      }
    },
  );

  test.each<[string, Record<string, unknown>]>([
    ["a property and its value", { temperature: "not supported" }],
    ["a property and one in it", { temperature: { "not supported": 1 } }],
    ["quotes and backslashes", { description: 'temperature "\\" is not supported' }],
    ["an escape", { description: "\\u0073tream_options max_completion_tokens" }],
  ])("nor do others' change for what the server repeats of %s in a schema", async (_, inputSchema) => {
    const [written, python] = [JSON.stringify(inputSchema), JSON.stringify(inputSchema).replaceAll('"', "'")];
    const bodies = [
      `{"detail":[{"msg":"unexpected value","input":${written}}]}`,
      JSON.stringify({ error: { message: `unexpected value ${written}` } }),
      JSON.stringify({ error: { message: `unexpected value ${python}` } }),
      `unexpected value ${written}`,
      `unexpected value ${Object.values(inputSchema)}`,
    ];
    for (const body of bodies) {
      const server = mock({ kind: "status", status: 400, body });
      const { stream } = engine(server.url);
      const request = { ...QUESTION, maxTokens: 50, temperature: 0.2 };
      const signal = new AbortController().signal;
      await collect(stream({ ...request, tools: [{ ...tool, inputSchema }] }, signal)).catch(() => {});
      await collect(stream(request, signal));
      expect(server.requests.at(-1)?.body).toMatchObject(WHOLE);
    }
  });

  test("and given up if the server goes on refusing what it repeats", async () => {
    const again = refused(`unexpected value ${WORDS}`);
    const server = mock(again, again, again, again, again, again);
    const { stream } = engine(server.url);
    const request = { ...QUESTION, maxTokens: 50, temperature: 0.2 };
    const signal = new AbortController().signal;
    const theirs = { messages: [{ role: "user" as const, content: WORDS }] };
    expect((await failure(collect(stream({ ...request, ...theirs }, signal)))).kind).toBe("rejected");
    expect(server.requests.length).toBe(5);
  });

  test("and given up if the server asks for a little less each time", async () => {
    const server = mock(...Array.from({ length: 20 }, (_, at) => refused(`at most ${100 - at} completion tokens`)));
    expect((await failure(ask(server.url))).kind).toBe("rejected");
    expect(server.requests.map(({ body }) => body.max_tokens)).toEqual([4096, 100, 99, 98, 97, 96, 95]);
  });

  const WHOLE = { stream_options: { include_usage: true }, temperature: 0.2, max_tokens: 50 };

  test.each<[string, Partial<ModelRequest>, string[]]>([
    ["the server goes on refusing", {}, ["", ""]],
    ["the server takes the request without its form", { output }, ["", "; json_schema", "; json_schema"]],
  ])("nor without what it seems not to support, if %s", async (_, theirs, more) => {
    const refusals = more.map(
      (end): MockAnswer => ({ kind: "status", status: 400, body: `at most 1 completion tokens${end}` }),
    );
    const server = mock(...refusals);
    const { stream } = engine(server.url);
    const request = { ...QUESTION, maxTokens: 50, temperature: 0.2 };
    const signal = new AbortController().signal;
    await collect(stream({ ...request, ...theirs }, signal)).catch(() => {});
    await collect(stream(request, signal));
    expect(server.requests.length).toBe(refusals.length + ("output" in theirs ? 2 : 1));
    expect(server.requests.at(-2)?.body).toMatchObject({ max_tokens: 1 });
    expect(server.requests.at(-1)?.body).toMatchObject(WHOLE);
  });
});

test("a refusal is compared with the prompt only when it is reported", async () => {
  const { url } = mock({ kind: "status", status: 400, body: { error: "bad input: the only spare key" } });
  let compared = 0;
  const server = {
    ...{ origin: url, model: "mock", apiKey: undefined, keySetting: "", urlSetting: "" },
    prompt() {
      compared++;
      return "the only spare key";
    },
  };
  const endpoint = { url: new URL(`${url}/chat/completions`), headers: {}, connectTimeoutMs: 60_000, fetch: undefined };
  const watch = watchRequest(new AbortController().signal, 60_000);
  const opening = await openAnswer(endpoint, server, "{}", watch);
  watch.close();
  if (opening.kind === "open") return expect.unreachable();
  expect([opening.refusal, compared]).toEqual(['{"error":"bad input: the only spare key"}', 0]);
  expect([opening.failure().detail, compared]).toEqual([expect.stringContaining("bad input: …"), 1]);
});

describe("an abort ends everything with the signal's reason", () => {
  const reason = new Error("cancelled by the user");

  test("before the request, which is then never sent", async () => {
    const server = mock();
    await expect(collect(engine(server.url).stream(QUESTION, AbortSignal.abort(reason)))).rejects.toBe(reason);
    expect(server.requests.length).toBe(0);
  });

  test("while waiting for headers, and the server sees the client disconnect", async () => {
    const server = mock({ kind: "hang" });
    const abort = new AbortController();
    const answer = collect(engine(server.url).stream(QUESTION, abort.signal));
    await server.arrived(1);
    abort.abort(reason);
    await expect(answer).rejects.toBe(reason);
    await server.left(1);
  });

  test("within the answer, and the server sees the client disconnect", async () => {
    const server = mock({ kind: "text", tokens: ["a"], ending: "hang" });
    const abort = new AbortController();
    const read = async () => {
      for await (const _ of engine(server.url).stream(QUESTION, abort.signal)) abort.abort(reason);
    };
    await expect(read()).rejects.toBe(reason);
    await server.left(1);
  });

  test("within the wait before a retry", async () => {
    const server = mock({ kind: "status", status: 429, headers: { "Retry-After": "10" } });
    const abort = new AbortController();
    const real = createOpenAiEngine({ baseUrl: server.url, log: () => queueMicrotask(() => abort.abort(reason)) });
    await expect(collect(real.stream(QUESTION, abort.signal))).rejects.toBe(reason);
    expect(server.requests.length).toBe(1);
  });

  test("and a reader that stops reading closes the connection", async () => {
    const server = mock({ kind: "text", tokens: ["a"], ending: "hang" });
    for await (const _ of engine(server.url).stream(QUESTION, new AbortController().signal)) break;
    await server.left(1);
  });
});
