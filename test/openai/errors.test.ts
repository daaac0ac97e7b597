import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI, { type APIError } from "openai";
import { BREAKING, type Surface, startSurface, WEATHER } from "./surface.ts";

let it: Surface;
beforeAll(async () => {
  it = await startSurface();
});
afterAll(() => it.stop());

const messages = [{ role: "user" as const, content: "hi" }];
const failing = async (asked: Promise<unknown>): Promise<APIError> =>
  asked.then(
    () => {
      throw new Error("it was answered");
    },
    (error: APIError) => error,
  );
const chat = (body: object) =>
  failing(it.client.chat.completions.create({ model: it.agent, messages, ...body } as never));

test("a wrong key is an AuthenticationError", async () => {
  const client = new OpenAI({ apiKey: "rst_live_wrong", baseURL: it.baseURL });
  const error = await failing(client.chat.completions.create({ model: it.agent, messages }));
  expect(error).toBeInstanceOf(OpenAI.AuthenticationError);
  expect(error).toMatchObject({ status: 401, code: "unauthorized", type: "authentication_error", param: null });
});

test("a key that may only read is a PermissionDeniedError", async () => {
  const { key } = (await it.person.ask("POST", "/v1/auth/keys", { scopes: ["read"] })).body;
  const client = new OpenAI({ apiKey: key, baseURL: it.baseURL });
  expect((await client.models.list()).data).toHaveLength(2);
  const error = await failing(client.chat.completions.create({ model: it.agent, messages }));
  expect(error).toBeInstanceOf(OpenAI.PermissionDeniedError);
  expect(error).toMatchObject({ code: "forbidden", type: "permission_error" });
});

test("an unknown agent, another account's, and one that a limited key may not see are a NotFoundError", async () => {
  const stranger = await it.server.signUp();
  const { instanceId } = (await stranger.ask("POST", "/v1/instances", { name: "theirs" })).body;
  const { agentId } = (await stranger.ask("POST", `/v1/instances/${instanceId}/agents`, { name: "Bo" })).body;
  const other = (await it.person.ask("POST", "/v1/instances", { name: "other" })).body.instanceId;
  const { key } = (await it.person.ask("POST", "/v1/auth/keys", { instanceId: other })).body;
  const limited = new OpenAI({ apiKey: key, baseURL: it.baseURL });
  for (const error of [
    await chat({ model: "gpt-5" }),
    await chat({ model: agentId }),
    await failing(it.client.responses.create({ model: agentId, input: "hi" })),
    await failing(limited.chat.completions.create({ model: it.agent, messages })),
    await failing(it.client.embeddings.create({ model: "text-embedding-3-small", input: "hi" })),
    await failing(it.client.models.retrieve("gpt-5")),
  ]) {
    expect(error).toBeInstanceOf(OpenAI.NotFoundError);
    expect(error).toMatchObject({ code: "not_found", type: "invalid_request_error", param: "model" });
  }
  expect((await limited.models.list()).data.map(({ id }) => id)).toEqual(["local:all-minilm-l6-v2"]);
});

const image = { type: "image_url", image_url: { url: "https://example.org/cat.png" } };
const call = { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } };
const named = (name: string) => ({ tools: [{ type: "function", function: { ...WEATHER, name } }] });
const form = (schema: object) => ({ response_format: { type: "json_schema", json_schema: { name: "x", schema } } });

test.each([
  ["n", { n: 2 }],
  ["logprobs", { logprobs: true }],
  ["tool_choice", { ...named("f"), tool_choice: { type: "function", function: { name: "g" } } }],
  ["tool_choice", { tool_choice: { type: "function", function: { name: "f" } } }],
  ["tools", named("read_file")],
  ["tools", { ...named("read_file"), tool_choice: { type: "function", function: { name: "read_file" } } }],
  ["tools", { tools: [...named("f").tools, ...named("f").tools] }],
  ["tools.0.function.name", named("not a name")],
  ["messages", { messages: [] }],
  ["messages", { messages: [{ role: "assistant", content: "Hello." }] }],
  ["messages.0.content", { messages: [{ role: "user", content: [image] }] }],
  ["messages.1", { messages: [...messages, { role: "tool", tool_call_id: "call_1", content: "x" }] }],
  ["messages", { messages: [...messages, { role: "assistant", tool_calls: [call] }] }],
  ["temperature", { temperature: 3 }],
  ["max_tokens", { max_tokens: 0 }],
  ["stop", { stop: ["a", "b", "c", "d", "e"] }],
  ["response_format", { response_format: { type: "xml" } }],
  ["response_format.json_schema.schema", form({ type: "string", if: {} })],
  ["response_format.json_schema.schema", form({ type: "object", description: "x".repeat(17_000) })],
])("what cannot be honoured is a BadRequestError about %s", async (param, body) => {
  const error = await chat(body);
  expect(error).toBeInstanceOf(OpenAI.BadRequestError);
  expect(error).toMatchObject({ code: "invalid_request", type: "invalid_request_error" });
  expect(error.param).toStartWith(param);
});

const ITEM = "expected an item of type message, function_call, function_call_output, item_reference or reasoning";
const PIXEL = "data:image/png;base64,iVBORw0KGgo=";

test.each([
  ["/chat/completions", { messages: [] }, "messages: expected at least one message"],
  ["/chat/completions", { messages, max_tokens: 1e9 }, "max_tokens: expected a whole number from 1"],
  ["/responses", { input: [] }, "input: expected text, or a list of messages"],
  ["/responses", { input: "" }, "input: expected text, or a list of messages"],
  ["/responses", { input: [], previous_response_id: "resp_1" }, "input: expected text, or a list of messages"],
  ["/responses", { input: [...messages, { type: "computer_call", id: "x" }] }, `input.1.type: ${ITEM}`],
  ["/responses", { input: ["hi"] }, `input.0: ${ITEM}`],
  ["/responses", { input: [{ role: "tool", content: "x" }] }, "input.0.role: expected a role: user, assistant"],
  ["/responses", { input: [{ role: "user" }] }, "input.0.content: expected text, or a list of parts"],
  [
    "/responses",
    {
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "a" },
            { type: "input_file", file_id: "f" },
          ],
        },
      ],
    },
    "input.0.content.1.type: expected a part of type input_text, output_text, input_image or refusal",
  ],
  [
    "/responses",
    { input: [{ role: "user", content: [{ type: "input_image", image_url: "https://example.org/cat.png" }] }] },
    "input.0.content.0.image_url: expected a data URL of an image",
  ],
  [
    "/responses",
    { input: [{ type: "function_call_output", call_id: "a", output: [{ type: "input_image", image_url: PIXEL }] }] },
    "input.0.output.0.type: expected a part of type input_text or output_text: an agent reads results as text",
  ],
  [
    "/chat/completions",
    {
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "a" },
            { type: "file", file: {} },
          ],
        },
      ],
    },
    "messages.0.content.1.type: expected a part of type text or image_url",
  ],
  [
    "/chat/completions",
    { messages: [{ role: "user", content: [image] }] },
    "messages.0.content.0.image_url.url: expected",
  ],
  ["/embeddings", { input: [] }, "input: expected text, or a list of 1 to 2048 texts"],
  [
    "/embeddings",
    { input: Array.from({ length: 257 }, () => "x") },
    'input: expected at most 256 texts, or encoding_format "base64" with them',
  ],
])("%s says of %j what it expects", async (path, body, expected) => {
  const error = await failing(it.client.post(path, { body: { model: it.agent, ...body } }));
  expect(error).toMatchObject({ status: 400, error: { message: expect.stringContaining(expected) } });
});

test("unknown fields are ignored, and so are those that change nothing", async () => {
  const asked = { model: it.agent, messages, n: 1, logprobs: false, user: "ada", seed: 7, store: true, new_field: {} };
  const { choices } = await it.client.chat.completions.create(asked as never);
  expect(choices[0]?.message.content).toBe("Hello, world");
});

test("a model that fails is an InternalServerError that the client does not repeat", async () => {
  it.mock.script({ kind: "status", status: 400, body: { error: { message: "no" } } });
  const before = it.mock.requests.length;
  const client = it.client.withOptions({ maxRetries: 2 });
  const error = await failing(client.chat.completions.create({ model: it.agent, messages }));
  expect(error).toBeInstanceOf(OpenAI.InternalServerError);
  expect(error).toMatchObject({ status: 502, code: "model_error", type: "server_error" });
  expect(it.mock.requests.length - before).toBe(1);
});

test("a model that fails in the middle of a stream ends it with the error", async () => {
  it.mock.script(BREAKING);
  const stream = await it.client.chat.completions.create({ model: it.agent, messages, stream: true });
  expect(await failing(Array.fromAsync(stream))).toMatchObject({ code: "model_error", type: "server_error" });
});

test("above its rate an account gets a RateLimitError, in OpenAI's form", async () => {
  // A slow machine makes fewer requests in a second than an account usually has.
  const slow = await startSurface({ ROOST_WRITES_PER_SECOND: "2" });
  await using _ = { [Symbol.asyncDispose]: () => slow.stop() };
  let error: unknown;
  while (!(error instanceof OpenAI.RateLimitError)) {
    const burst = Array.from({ length: 20 }, () => slow.client.embeddings.create({ model: "x", input: "x" }));
    error = (await Promise.allSettled(burst))
      .map((one) => one.status === "rejected" && one.reason)
      .find((one) => one?.status === 429);
  }
  expect(error).toMatchObject({ code: "rate_limited", type: "rate_limit_error", param: null });
});

test("another method on these paths, and a body that is no JSON, are refused in the same form", async () => {
  const wrong = await fetch(`${it.baseURL}/chat/completions`, { headers: { Authorization: `Bearer ${it.key}` } });
  expect(wrong.status).toBe(405);
  expect(await wrong.json()).toMatchObject({
    error: { type: "invalid_request_error", code: "method_not_allowed", param: null, status: 405 },
  });
});
