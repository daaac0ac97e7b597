import { afterAll, beforeAll, expect, test } from "bun:test";
import type OpenAI from "openai";
import { kindsOf, shownText } from "../messages/conversation.ts";
import { BREAKING, PERSON, type Surface, startSurface, WEATHER } from "./surface.ts";

let it: Surface;
beforeAll(async () => {
  it = await startSurface();
});
afterAll(() => it.stop());

const tools: OpenAI.Responses.FunctionTool[] = [{ type: "function", ...WEATHER, strict: true }];
const calls = [{ name: "get_weather", arguments: { city: "Paris" } }];
/** Of the answer to this question. */
const taintAfter = (question: string) =>
  it.server.foundation.store.sqlite
    .query(
      "SELECT responses.tainted FROM responses JOIN messages AS answer USING (message_id) JOIN messages AS question ON question.run_id = answer.run_id AND question.role = 'user' WHERE question.text = ?",
    )
    .values(question);
const conversations = async () => (await it.person.ask("GET", it.at("/conversations?origin=openai"))).body.data;

test("the client's README: a response", async () => {
  const response = await it.client.responses.create({
    model: it.agent,
    instructions: "You are a coding assistant that talks like a pirate",
    input: "Are semicolons optional in JavaScript?",
  });
  expect(response.output_text).toBe("Hello, world");
  expect(response).toMatchObject({
    status: "completed",
    usage: { input_tokens: 12, output_tokens: 3, total_tokens: 15 },
  });
  expect(it.mock.requests.at(-1)?.body.messages[0].content).toEndWith("talks like a pirate");
});

test("streaming has the official events in their order, numbered, and their text is the answer", async () => {
  it.mock.script({ kind: "text", tokens: ["One", " two"], delayMs: 5 });
  const stream = await it.client.responses.create({ model: it.agent, input: "Say this is a test", stream: true });
  const events = await Array.fromAsync(stream);
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at));
  const types = events.map(({ type }) => type).filter((type, at, all) => type !== all[at - 1]);
  expect(types).toEqual([
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
  ]);
  const deltas = events.flatMap((event) => (event.type === "response.output_text.delta" ? event.delta : []));
  expect(deltas.join("")).toBe("One two");
  expect(events.at(-1)).toMatchObject({ response: { status: "completed", usage: { output_tokens: 2 } } });
});

test("the client's own assembly of a stream gives the whole response, with a function's call", async () => {
  it.mock.script({ kind: "tools", calls, text: "Let me see." });
  const stream = it.client.responses.stream({ model: it.agent, input: "weather?", tools });
  const { output, output_text } = await stream.finalResponse();
  expect(output_text).toBe("Let me see.");
  expect(output.map(({ type }) => type)).toEqual(["message", "function_call"]);
  expect(output[1]).toMatchObject({ name: "get_weather", arguments: '{"city":"Paris"}', status: "completed" });
});

test("a call that the token limit has cut off is incomplete, and so is its response, whole or streamed", async () => {
  const cut = {
    kind: "tools" as const,
    calls: [...calls, { name: "get_weather", arguments: '{"ci' }],
    text: "Let me see.",
    finish: "length",
  };
  it.mock.script(cut, cut);
  const asked = { model: it.agent, input: "And in Oslo?", tools, max_output_tokens: 16 };
  const incomplete = {
    status: "incomplete",
    incomplete_details: { reason: "max_output_tokens" },
    output: [
      { type: "message", status: "completed" },
      { type: "function_call", status: "completed", arguments: '{"city":"Paris"}' },
      { type: "function_call", status: "incomplete", arguments: '{"ci' },
    ],
  };
  expect(await it.client.responses.create(asked)).toMatchObject(incomplete);
  const events = await Array.fromAsync(await it.client.responses.create({ ...asked, stream: true }));
  expect(events.at(-1)).toMatchObject({ type: "response.incomplete", response: incomplete });
  const done = events.flatMap((event) => (event.type === "response.output_item.done" ? [event.item] : []));
  expect(done as unknown).toMatchObject(incomplete.output);
});

test("previous_response_id continues a response, which is a conversation of origin openai", async () => {
  await it.begin();
  const first = await it.client.responses.create({
    model: it.agent,
    input: "My name is Bo.",
    instructions: "Be brief.",
  });
  const second = await it.client.responses.create({
    model: it.agent,
    input: "What is my name?",
    previous_response_id: first.id,
  });
  expect(it.asked().map(({ role, content }) => [role, content])).toEqual([
    ["user", "My name is Bo."],
    ["assistant", "Hello, world"],
    ["user", "What is my name?"],
  ]);
  expect(it.mock.requests.at(-1)?.body.messages[0].content).not.toContain("Be brief.");
  const [conversation, ...others] = await conversations();
  expect(others).toEqual([]);
  expect(conversation).toMatchObject({ messageCount: 4, origin: { type: "openai", id: null } });
  const page = await it.person.ask("GET", it.at(`/messages?conversationId=${conversation.conversationId}`));
  expect(page.body.data.map(({ message }: { message: string }) => message)).toEqual([
    "My name is Bo.",
    "Hello, world",
    "What is my name?",
    "Hello, world",
  ]);
  const runs = (await it.person.ask("GET", it.at("/runs"))).body.data;
  expect(runs).toMatchObject([
    { status: "completed", origin: { type: "openai", id: second.id }, model: "openai:mock", steps: 1 },
    { status: "completed", origin: { type: "openai", id: first.id } },
  ]);
});

test("the deltas of a response's run, joined, are the text of its message", async () => {
  await it.begin();
  await it.client.responses.create({ model: it.agent, input: "hi" });
  const frames = await it.until("run.completed");
  expect(kindsOf(frames).filter((kind) => kind !== "agent.updated")).toEqual([
    "run.queued",
    "run.started",
    "message.delta",
    "message.completed",
    "run.completed",
  ]);
  expect(shownText(frames)).toBe(frames.find(({ event }) => event === "message.completed")?.data.message.message);
});

test("two responses may continue the same one: each goes on from what it names", async () => {
  await it.begin();
  const ask = (input: string, previous?: string) =>
    it.client.responses.create({ model: it.agent, input, ...(previous && { previous_response_id: previous }) });
  const root = await ask("root");
  const left = await ask("left", root.id);
  await ask("right", root.id);
  expect(it.asked().map(({ content }) => content)).toEqual(["root", "Hello, world", "right"]);
  await ask("left again", left.id);
  expect(it.asked().map(({ content }) => content)).toEqual([
    "root",
    "Hello, world",
    "left",
    "Hello, world",
    "left again",
  ]);
  expect(await conversations()).toHaveLength(2);
});

test("a chain of a mebibyte and a half is continued as a whole", async () => {
  const models = [{ id: "mock", object: "model", context_length: 10_000_000 }];
  const vast = await startSurface({}, undefined, undefined, { models });
  try {
    const input = (text: string): OpenAI.Responses.ResponseInput => [
      { role: "user", content: text },
      { type: "function_call", call_id: "call_1", name: "get_weather", arguments: "x".repeat(400_000) },
      { type: "function_call_output", call_id: "call_1", output: "rain" },
    ];
    let previous: string | null = null;
    for (const text of ["one", "two", "three", "four"]) {
      const response: OpenAI.Responses.Response = await vast.client.responses.create({
        ...{ model: vast.agent, input: input(text), previous_response_id: previous },
      });
      previous = response.id;
    }
    await vast.client.responses.create({ model: vast.agent, input: "and now?", previous_response_id: previous });
    const asked = vast.asked().flatMap(({ role, content }) => (role === "user" ? [content] : []));
    expect(asked).toEqual(["one", "two", "three", "four", "and now?"]);
  } finally {
    await vast.stop();
  }
});

test("what requests continue counts as their bodies do against what the host holds: then 503", async () => {
  // A host of its own: who leaves may still reach the model while the next test asks it.
  const own = await startSurface();
  try {
    const ask = (model: string, input: string, previous: string | null, signal?: AbortSignal) =>
      own.client.responses.create({ model, input, previous_response_id: previous }, { signal });
    const long = "x".repeat(950_000);
    const agents = [await own.newAgent(), await own.newAgent()];
    const before = await Promise.all(
      agents.map(async (agent) => [agent, (await ask(agent, long, (await ask(agent, long, null)).id)).id] as const),
    );
    // In line behind a model that does not answer: a hundred mebibytes, asked for in a few kilobytes.
    own.mock.script({ kind: "hang" }, { kind: "hang" });
    const leaving = new AbortController();
    const busy = before.flatMap(([agent, id]) =>
      Array.from({ length: 33 }, () => ask(agent, "hi", id, leaving.signal)),
    );
    const refused = Promise.any(
      busy.map((one) =>
        one.then(
          () => Promise.reject(),
          (error: unknown) => error,
        ),
      ),
    );
    const error = await refused;
    leaving.abort();
    await Promise.allSettled(busy);
    expect(error).toMatchObject({ status: 503, message: expect.stringContaining("too many long requests") });
  } finally {
    await own.stop();
  }
});

test("a function's call is answered with its output alone, the rest is known", async () => {
  it.mock.script({ kind: "tools", calls });
  const first = await it.client.responses.create({ model: it.agent, input: "how warm is it?", tools });
  const [call] = first.output;
  if (call?.type !== "function_call") throw new Error("there is no call");
  const second = await it.client.responses.create({
    model: it.agent,
    previous_response_id: first.id,
    input: [{ type: "function_call_output", call_id: call.call_id, output: "22 degrees" }],
    tools,
  });
  expect(second.output_text).toBe("Hello, world");
  const isTainted = (text: string) =>
    it.server.foundation.store.sqlite.query("SELECT tainted FROM messages WHERE text = ?").values(text);
  expect([isTainted("how warm is it?"), isTainted("22 degrees")]).toEqual([[[0]], [[1]]]);
  expect(it.asked().map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
  const open = await it.client.responses
    .create({ model: it.agent, previous_response_id: first.id, input: "never mind" })
    .catch((error: unknown) => error);
  expect(open).toMatchObject({ status: 400, param: "input" });
});

test("what was answered may be named by the ids of its items, and goes on in its conversation", async () => {
  await it.begin();
  const user = (content: string) => ({ role: "user" as const, content });
  const named = (id: string) => ({ type: "item_reference" as const, id });
  it.mock.script({ kind: "tools", calls: [...calls, ...calls], text: "Let me see." });
  const asked: OpenAI.Responses.ResponseInput = [user("how warm is it?")];
  const first = await it.client.responses.create({ model: it.agent, input: asked, tools });
  for (const item of first.output) asked.push(named(item.id ?? ""));
  for (const item of first.output) {
    if (item.type === "function_call")
      asked.push({ type: "function_call_output", call_id: item.call_id, output: "22 degrees" });
  }
  const second = await it.client.responses.create({ model: it.agent, input: asked, tools });
  expect(it.asked().map(({ role, content }) => [role, content])).toEqual([
    ["user", "how warm is it?"],
    ["assistant", "Let me see."],
    ["tool", "22 degrees"],
    ["tool", "22 degrees"],
  ]);
  asked.push(...second.output.map(({ id }) => named(id ?? "")), user("Is that much?"));
  await it.client.responses.create({ model: it.agent, input: asked, tools });
  expect(it.asked().slice(4)).toMatchObject([
    { role: "assistant", content: "Hello, world" },
    { role: "user", content: "Is that much?" },
  ]);
  const [conversation, ...others] = await conversations();
  expect(others).toEqual([]);
  const page = await it.person.ask("GET", it.at(`/messages?conversationId=${conversation.conversationId}`));
  expect(page.body.data.map(({ message }: { message: string }) => message)).toEqual([
    "how warm is it?",
    'Let me see.\n\nget_weather({"city":"Paris"})\n\nget_weather({"city":"Paris"})',
    "22 degrees\n\n22 degrees",
    "Hello, world",
    "Is that much?",
    "Hello, world",
  ]);
});

test("an answer that is named by its id is as trusted as it was, one that is sent again is not", async () => {
  await it.begin();
  const { output } = await it.client.responses.create({ model: it.agent, input: "hi" });
  const after = async (item: OpenAI.Responses.ResponseInputItem, question: string) => {
    const input = [item, { role: "user" as const, content: question }];
    await it.client.responses.create({ model: it.agent, input });
    return taintAfter(question);
  };
  expect(await after({ type: "item_reference", id: output[0]?.id ?? "" }, "known?")).toEqual([[0]]);
  expect(await after({ role: "assistant", content: "Hello, world" }, "claimed?")).toEqual([[1]]);
});

test("a response is no more trusted than the ones that it continues", async () => {
  await it.begin();
  const continued = async (id: string, question: string) =>
    (await it.client.responses.create({ model: it.agent, previous_response_id: id, input: question })).id;
  const first = await it.client.responses.create({ model: it.agent, input: "hi" });
  const second = await continued(first.id, "as trusted?");
  expect(taintAfter("as trusted?")).toEqual([[0]]);
  it.server.foundation.store.sqlite.run("UPDATE responses SET tainted = 1 WHERE response_id = ?", [first.id]);
  await continued(second, "as untrusted?");
  expect(taintAfter("as untrusted?")).toEqual([[1]]);
});

test("an item that is not stored, another agent's, or there already cannot be named", async () => {
  const ask = (model: string, ids: string[], body: object = {}) =>
    it.client.responses
      .create({
        ...{ model, ...body },
        input: [...ids.map((id) => ({ type: "item_reference" as const, id })), { role: "user", content: "hi" }],
      })
      .catch((error: unknown) => error as { output?: { id: string }[] });
  const idIn = (answer: Awaited<ReturnType<typeof ask>>) => answer.output?.[0]?.id ?? "";
  const missing = { status: 404, param: "input.0.id" };
  expect(await ask(it.agent, [idIn(await ask(it.agent, [], { store: false }))])).toMatchObject(missing);
  const stored = idIn(await ask(it.agent, []));
  expect(await ask(it.agent, [stored.replace("msg_", "fc_")])).toMatchObject(missing);
  expect(await ask(it.agent, [`${stored.replace("msg_", "fc_")}_0`])).toMatchObject(missing);
  expect(await ask(it.agent, [`${stored}_0`])).toMatchObject(missing);
  expect(await ask(it.agent, ["rs_1"])).toMatchObject(missing);
  expect(await ask(it.agent, [stored, stored])).toMatchObject({ status: 400, param: "input.1.id" });
  expect(await ask(await it.newAgent(), [stored])).toMatchObject(missing);
  expect(await ask(it.agent, [stored])).toMatchObject({ status: "completed" });
});

test("the question of a response that brings its history is what follows the last answer in it", async () => {
  await it.begin();
  const input: OpenAI.Responses.ResponseInput = [
    { role: "user", content: "My name is Bo." },
    { role: "assistant", content: "Hello, Bo." },
    { role: "user", content: "What is my name?" },
  ];
  const before = await it.client.responses.create({ model: it.agent, input });
  const [{ conversationId }] = await conversations();
  const page = await it.person.ask("GET", it.at(`/messages?conversationId=${conversationId}`));
  expect(page.body.data.map(({ message }: { message: string }) => message)).toEqual([
    "What is my name?",
    "Hello, world",
  ]);
  await it.client.responses.create({ model: it.agent, previous_response_id: before.id, input: "Thanks." });
  expect(it.asked().map(({ content }) => content)).toEqual([
    "My name is Bo.",
    "Hello, Bo.",
    "What is my name?",
    "Hello, world",
    "Thanks.",
  ]);
});

test("items instead: messages, calls and outputs of a caller that keeps them itself", async () => {
  await it.client.responses.create({
    model: it.agent,
    store: false,
    input: [
      { role: "developer", content: "Be brief." },
      { role: "user", content: [{ type: "input_text", text: "weather?" }] },
      { type: "function_call", call_id: "call_1", name: "get_weather", arguments: "{}" },
      { type: "function_call", call_id: "call_2", name: "get_weather", arguments: "{}" },
      { type: "function_call_output", call_id: "call_1", output: "rain" },
      { type: "function_call_output", call_id: "call_2", output: "sun" },
    ],
  });
  expect(it.asked().map(({ role, content }) => [role, content])).toEqual([
    ["user", "weather?"],
    ["assistant", ""],
    ["tool", "rain"],
    ["tool", "sun"],
  ]);
});

test("what is not stored, another agent's, a cleared and a deleted one cannot be continued: 404", async () => {
  const create = (body: object) => it.client.responses.create({ model: it.agent, input: "hi", ...body });
  const gone = async (id: string, body: object = {}) =>
    expect(await create({ previous_response_id: id, ...body }).catch((error: unknown) => error)).toMatchObject({
      status: 404,
      param: "previous_response_id",
    });
  await gone((await create({ store: false })).id);
  const stored = await create({});
  await gone(stored.id, { model: await it.newAgent() });
  await gone("resp_unknown");
  await create({ previous_response_id: stored.id });
  const [{ conversationId }] = await conversations();
  await it.person.ask("DELETE", it.at(`/messages?conversationId=${conversationId}`));
  await gone(stored.id);
  const other = await create({});
  const [latest] = await conversations();
  await it.person.ask("DELETE", it.at(`/conversations/${latest.conversationId}`));
  await gone(other.id);
});

test("the metadata of a request comes back with its answer, whole or streamed", async () => {
  const metadata = { ticket: "42", team: "blue" };
  const asked = { model: it.agent, input: "hi", metadata };
  expect((await it.client.responses.create(asked)).metadata).toEqual(metadata);
  const events = await Array.fromAsync(await it.client.responses.create({ ...asked, stream: true }));
  expect(events.at(-1)).toMatchObject({ type: "response.completed", response: { metadata } });
});

test("a response that is kept can be read: what it answered, with its ids, its status and its usage", async () => {
  it.mock.script(
    { kind: "tools", calls, text: "Let me see." },
    { kind: "text", tokens: ["Once upon"], finish: "length" },
  );
  const first = await it.client.responses.create({ model: it.agent, input: "how warm is it?", tools });
  expect(await it.client.responses.retrieve(first.id)).toEqual({ ...first, tools: [] });
  const second = await it.client.responses.create({ model: it.agent, input: "a story", max_output_tokens: 2 });
  const read = await it.client.responses.retrieve(second.id);
  expect(read).toEqual({ ...second, max_output_tokens: null });
  const gone = { status: 404, type: "invalid_request_error" };
  const unkept = await it.client.responses.create({ model: it.agent, input: "hi", store: false });
  expect(await it.client.responses.retrieve(unkept.id).catch((error: unknown) => error)).toMatchObject(gone);
  const other = await it.server.signUp();
  const { key } = (await other.ask("POST", "/v1/auth/keys", {})).body;
  for (const method of ["GET", "DELETE"])
    expect(await it.server.ask(method, `/v1/responses/${first.id}`, { key })).toMatchObject({ status: 404 });
});

test("a response that is deleted is gone at once, and its conversation with the last response in it", async () => {
  await it.begin();
  const first = await it.client.responses.create({ model: it.agent, input: "one" });
  const continuing = { model: it.agent, previous_response_id: first.id, input: "two" };
  const second = await it.client.responses.create(continuing);
  await it.client.responses.delete(first.id);
  const gone = { status: 404 };
  expect(await it.client.responses.retrieve(first.id).catch((error: unknown) => error)).toMatchObject(gone);
  expect(await it.client.responses.delete(first.id).catch((error: unknown) => error)).toMatchObject(gone);
  expect(await it.client.responses.create(continuing).catch((error: unknown) => error)).toMatchObject(gone);
  expect(await conversations()).toMatchObject([{ messageCount: 4 }]);
  const { body } = await it.server.ask("DELETE", `/v1/responses/${second.id}`, { key: it.key });
  expect(body).toEqual({ id: second.id, object: "response", deleted: true });
  expect(await conversations()).toEqual([]);
});

test("text.format json_schema gives the value, as the client parses it", async () => {
  it.mock.script({ kind: "text", tokens: ['{"name":"Ada"}'] }, { kind: "text", tokens: ['{"name":"Ada","age":36}'] });
  const format = { type: "json_schema" as const, name: "person", schema: { ...PERSON }, strict: true };
  const response = await it.client.responses.parse({ model: it.agent, input: "Who is Ada?", text: { format } });
  expect(response.output_parsed as unknown).toEqual({ name: "Ada", age: 36 });
});

test("a function that is chosen by its name is called, and its result continues the response", async () => {
  it.mock.script({ kind: "text", tokens: ['{"city":"Oslo"}'] });
  const choice = { type: "function" as const, name: WEATHER.name };
  const tools = [{ type: "function" as const, strict: true, ...WEATHER }];
  const asked = { model: it.agent, input: "Is it raining in Oslo?", tools, tool_choice: choice };
  const first = await it.client.responses.create(asked);
  expect(first.tool_choice).toEqual(choice);
  const [call, ...others] = first.output;
  if (call?.type !== "function_call") throw new Error(`a ${call?.type} is no call`);
  expect(others).toEqual([]);
  expect(call).toMatchObject({ name: "get_weather", arguments: '{"city":"Oslo"}' });
  it.mock.script({ kind: "text", tokens: ["Yes."] });
  const next = await it.client.responses.create({
    model: it.agent,
    previous_response_id: first.id,
    input: [{ type: "function_call_output", call_id: call.call_id, output: "rain" }],
  });
  expect(next.output_text).toBe("Yes.");
});

test("a refusal among the items is what the agent said", async () => {
  await it.client.responses.create({
    model: it.agent,
    input: [
      { role: "user", content: "Open it." },
      {
        type: "message",
        id: "msg_1",
        status: "completed",
        role: "assistant",
        content: [{ type: "refusal", refusal: "I will not." }],
      },
      { role: "user", content: "Why?" },
    ],
  });
  expect(it.asked().map(({ content }) => content)).toEqual(["Open it.", "I will not.", "Why?"]);
});

test("an answer that had to end early is incomplete, and a model that fails ends the stream with response.failed", async () => {
  it.mock.script({ kind: "text", tokens: ["Once upon"], finish: "length" });
  const short = await it.client.responses.create({ model: it.agent, input: "a story", max_output_tokens: 2 });
  expect(short).toMatchObject({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } });
  it.mock.script(BREAKING);
  const stream = await it.client.responses.create({ model: it.agent, input: "go on", stream: true });
  const last = (await Array.fromAsync(stream)).at(-1);
  expect(last).toMatchObject({
    type: "response.failed",
    response: { status: "failed", error: { code: "server_error" } },
  });
});

test.each([
  ["background", { background: true }],
  ["conversation", { conversation: "conv_1" }],
  ["metadata", { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`${at}`, ""])) }],
  ["metadata.a", { metadata: { a: "x".repeat(513) } }],
  ["metadata", { metadata: { ["x".repeat(65)]: "" } }],
  ["prompt", { prompt: { id: "pmpt_1" } }],
  ["tools.0.type", { tools: [{ type: "web_search" }] }],
  ["tool_choice", { tool_choice: "required" }],
  ["tool_choice", { tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "mcp", name: "x" }] } }],
  ["text.format.schema", { text: { format: { type: "json_schema", name: "x", schema: { type: "thing" } } } }],
])("what cannot be honoured is 400 about %s", async (param, body) => {
  const asked = { model: it.agent, input: "hi", ...body } as OpenAI.Responses.ResponseCreateParams;
  const error = await it.client.responses.create(asked).catch((error: unknown) => error);
  expect(error).toMatchObject({ status: 400, param: expect.stringMatching(new RegExp(`^${param}`)) });
});
