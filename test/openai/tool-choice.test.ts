import { afterAll, beforeAll, expect, test } from "bun:test";
import type OpenAI from "openai";
import { type Surface, startSurface, WEATHER } from "./surface.ts";

let it: Surface;
beforeAll(async () => {
  it = await startSurface();
});
afterAll(() => it.stop());

/** Its schema refers to parts of itself, as those that libraries write do. */
const PLAN = {
  name: "plan_trip",
  description: "Plans a trip",
  parameters: {
    type: "object",
    properties: { stops: { type: "array", items: { $ref: "#/$defs/Stop" }, minItems: 1 } },
    required: ["stops"],
    additionalProperties: false,
    $defs: {
      Stop: { type: "object", properties: { city: { enum: ["Oslo", "Rome"] } }, required: ["city"] },
    },
  },
};
const inChat = (...functions: (typeof WEATHER)[]) =>
  functions.map((one) => ({ type: "function" as const, function: one }));
const inResponse = (...functions: (typeof WEATHER)[]) =>
  functions.map((one) => ({ type: "function" as const, strict: false, ...one }));
const messages = [{ role: "user" as const, content: "Is it raining in Oslo?" }];
const answers = (...texts: string[]) =>
  it.mock.script(...texts.map((text) => ({ kind: "text" as const, tokens: [text] })));
const callsIn = ({ choices }: OpenAI.ChatCompletion) =>
  choices[0]?.message.tool_calls?.map((call) => call.type === "function" && call.function);
const offered = (): string[] =>
  (it.mock.requests.at(-1)?.body.tools ?? []).map(({ function: { name } }: { function: { name: string } }) => name);

test("required: the only function is called, and it counts as the model's choice", async () => {
  answers("It is.", '{"city":"Oslo"}');
  const completion = await it.client.chat.completions.create({
    model: it.agent,
    messages,
    tools: inChat(WEATHER),
    tool_choice: "required",
  });
  expect(callsIn(completion)).toEqual([{ name: "get_weather", arguments: '{"city":"Oslo"}' }]);
  expect(completion.choices[0]?.finish_reason).toBe("tool_calls");

  answers('{"city":"Rome"}');
  const response = await it.client.responses.create({
    model: it.agent,
    input: "Is it raining in Rome?",
    tools: inResponse(WEATHER),
    tool_choice: "required",
  });
  expect(response.tool_choice).toBe("required");
  expect(response.output).toMatchObject([{ type: "function_call", name: "get_weather", arguments: '{"city":"Rome"}' }]);
});

test("required: of several functions one is called, with arguments that fit its own parameters", async () => {
  const asked = { model: it.agent, messages, tools: inChat(WEATHER, PLAN), tool_choice: "required" as const };
  answers(
    "It is.",
    '{"call": {"name": "plan_trip", "arguments": {"stops": [{"city": "Bonn"}]}}}',
    '{"call": {"name": "plan_trip", "arguments": {"stops": [{"city": "Rome"}]}}}',
  );
  const completion = await it.client.chat.completions.create(asked);
  expect(callsIn(completion)).toEqual([{ name: "plan_trip", arguments: '{"stops":[{"city":"Rome"}]}' }]);
  expect(completion.choices[0]).toMatchObject({ finish_reason: "tool_calls", message: { content: null } });
  const system: string = it.mock.requests.at(-1)?.body.messages[0].content;
  for (const { name, description } of [WEATHER, PLAN]) {
    expect(system).toContain(name);
    expect(system).toContain(description);
  }

  answers('{"call":{"name":"get_weather","arguments":{"city":"Oslo"}}}');
  const stream = it.client.responses.stream({
    model: it.agent,
    input: "Is it raining in Oslo?",
    tools: inResponse(WEATHER, PLAN),
    tool_choice: "required",
  });
  const { output } = await stream.finalResponse();
  expect(output).toMatchObject([{ type: "function_call", name: "get_weather", arguments: '{"city":"Oslo"}' }]);
});

test("allowed_tools: the agent is offered only those, or must call one of them", async () => {
  const tools = inChat(WEATHER, PLAN);
  const allowed = (mode: "auto" | "required") => ({
    type: "allowed_tools" as const,
    allowed_tools: { mode, tools: [{ type: "function", function: { name: "get_weather" } }] },
  });
  await it.client.chat.completions.create({ model: it.agent, messages, tools, tool_choice: allowed("auto") });
  expect(offered()).toContain("get_weather");
  expect(offered()).not.toContain("plan_trip");
  answers('{"city":"Oslo"}');
  const forced = await it.client.chat.completions.create({
    model: it.agent,
    messages,
    tools,
    tool_choice: allowed("required"),
  });
  expect(callsIn(forced)).toEqual([{ name: "get_weather", arguments: '{"city":"Oslo"}' }]);

  const choice = {
    type: "allowed_tools" as const,
    mode: "auto" as const,
    tools: [{ type: "function", name: "plan_trip" }],
  };
  const response = await it.client.responses.create({
    model: it.agent,
    input: "Where to?",
    tools: inResponse(WEATHER, PLAN),
    tool_choice: choice,
  });
  expect(response.tool_choice).toEqual(choice);
  expect(offered()).toContain("plan_trip");
  expect(offered()).not.toContain("get_weather");
});

test("the embedded model, which can call none of itself, calls one of several that it must", async () => {
  const model = await it.newAgent({ model: "local:smollm2-135m-instruct" });
  const [call] =
    callsIn(
      await it.client.chat.completions.create({
        model,
        messages,
        tools: inChat(WEATHER, PLAN),
        tool_choice: "required",
      }),
    ) ?? [];
  if (!call) throw new Error("there is no call");
  expect(["get_weather", "plan_trip"]).toContain(call.name);
  expect(Object.keys(JSON.parse(call.arguments))).toEqual([call.name === "plan_trip" ? "stops" : "city"]);
});

const unchecked = { ...PLAN, name: "g", parameters: { type: "object", properties: { a: { if: {} } } } };
test.each([
  ["tool_choice", "expected tools", { tool_choice: "required" }],
  ["tool_choice", "required", { tool_choice: "always" }],
  ["tool_choice", "name of one", { tool_choice: { type: "function", function: { name: "h" } } }],
  [
    "tools.1.function.parameters",
    "tools.1.function.parameters: schema.properties.a: the keyword if",
    { tools: inChat(WEATHER, unchecked), tool_choice: "required" },
  ],
])("a call that cannot be had is 400 about %s: %s", async (param, message, body) => {
  const asked = { model: it.agent, messages, ...body } as OpenAI.ChatCompletionCreateParamsNonStreaming;
  const error = await it.client.chat.completions.create(asked).catch((error: unknown) => error);
  expect(error).toMatchObject({ status: 400, param, error: { message: expect.stringContaining(message) } });
});
