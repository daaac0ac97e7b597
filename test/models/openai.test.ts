import { afterEach, describe, expect, test } from "bun:test";
import {
  ask,
  bytes,
  callsOf,
  collect,
  delta,
  engine,
  failure,
  finishOf,
  KEY,
  mock,
  QUESTION,
  raw,
  sse,
  stopServers,
  textOf,
} from "./openai-fixture.ts";

afterEach(stopServers);

describe("an answer", () => {
  test("arrives as text, usage and finish with the model that the server names; what arrived together is in one batch", async () => {
    const { url } = mock();
    const batches = await Array.fromAsync(engine(url).stream(QUESTION, new AbortController().signal));
    expect(batches.flat().filter(({ type }) => type !== "text")).toEqual([
      { type: "usage", promptTokens: 12, completionTokens: 6 },
      { type: "finish", reason: "stop", model: "mock" },
    ]);
    expect(textOf(batches.flat())).toBe("Hello, I am the mock model.");
    expect(batches.length).toBeLessThanOrEqual(2);
  });

  test("is requested with the model's own name, the key, tools and the whole conversation", async () => {
    const server = mock();
    const toolCalls = [
      { id: "c1", name: "look", input: '{"at":1}' },
      { id: "c2", name: "look", input: "{broken" },
    ];
    await ask(
      `${server.url}/`,
      {},
      {
        ...QUESTION,
        maxTokens: 7,
        temperature: 0.5,
        stop: ["END"],
        messages: [
          { role: "system", content: "Be kind" },
          { role: "assistant", content: "", toolCalls },
          { role: "tool", toolCallId: "c1", content: "seen" },
        ],
        tools: [{ name: "look", description: "Looks", inputSchema: { type: "object" } }],
      },
    );
    const [request] = server.requests;
    expect(request?.headers.authorization).toBe(`Bearer ${KEY}`);
    expect(request?.body).toEqual({
      model: "qwen3:4b",
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 7,
      temperature: 0.5,
      stop: ["END"],
      tools: [{ type: "function", function: { name: "look", description: "Looks", parameters: { type: "object" } } }],
      messages: [
        { role: "system", content: "Be kind" },
        {
          role: "assistant",
          content: "",
          tool_calls: [
            { id: "c1", type: "function", function: { name: "look", arguments: '{"at":1}' } },
            // Anything but JSON would make the server refuse the whole conversation.
            { id: "c2", type: "function", function: { name: "look", arguments: '{"invalid":"{broken"}' } },
          ],
        },
        { role: "tool", tool_call_id: "c1", content: "seen" },
      ],
    });
  });

  test.each([
    ["stop", "stop"],
    ["length", "length"],
    // Of what was filtered, a part is missing.
    ["content_filter", "length"],
    ["tool_calls", "stop"],
  ])("that finishes with %s without calls ends with %s", async (finish, expected) => {
    const { url } = mock({ kind: "text", tokens: ["x"], finish });
    expect(finishOf(await ask(url))).toEqual([expected as "stop"]);
  });

  test("survives being cut between any two bytes, with CRLF, comments and data over several lines", async () => {
    const body =
      ': hello\r\n\r\nevent: message\r\nid: 1\r\ndata: {"choices": [\r\ndata: {"delta":{"content":"Grüße 🦉"}}]}\r\n\r\n' +
      sse(delta({ content: " ü" }), delta({}, "stop"), {
        choices: [],
        usage: { prompt_tokens: 3, completion_tokens: 2 },
      }) +
      "data: [DONE]\n\n";
    const server = await raw((socket) => socket.dribble(body));
    const events = await ask(server.url);
    expect(textOf(events)).toBe("Grüße 🦉 ü");
    expect(events.slice(-2).map(({ type }) => type)).toEqual(["usage", "finish"]);
  });

  test("keeps an emoji whole that the server split between tokens", async () => {
    const { url } = mock(
      bytes(sse(delta({ content: "a\ud83e" })), `${sse(delta({ content: "\udd89" }, "stop"))}data: [DONE]\n\n`),
    );
    const batches = await Array.fromAsync(engine(url).stream(QUESTION, new AbortController().signal));
    expect(textOf(batches.flat())).toBe("a🦉");
    expect(batches.flat().every((event) => event.type !== "text" || event.text.isWellFormed())).toBe(true);
  });

  test("leaves out the model's reasoning", async () => {
    const { url } = mock(
      bytes(sse(delta({ reasoning_content: "hm", thinking: "hm" }), delta({ content: "Yes" }, "stop"))),
    );
    expect(textOf(await ask(url))).toBe("Yes");
  });

  test.each([
    [["<thi", "nk>Let me see.", "</think>", "\n\n", "Yes"], "Yes"],
    [["<think>It is cut"], ""],
    [["<", "b>Yes</b>"], "<b>Yes</b>"],
    [["<thi"], "<thi"],
  ])("leaves out the thoughts that %j begins with", async (tokens, text) => {
    const { url } = mock({ kind: "text", tokens, finish: "stop" });
    expect(textOf(await ask(url))).toBe(text);
  });

  test("is the model's refusal where it refuses to answer", async () => {
    const refusal = "I cannot help with that.";
    const { url } = mock(
      bytes(sse(delta({ content: null, refusal: "I cannot" }), delta({ refusal: " help with that." }, "stop"))),
      bytes(JSON.stringify({ choices: [{ message: { content: null, refusal }, finish_reason: "stop" }] })),
      bytes(
        JSON.stringify({ choices: [{ message: { content: [{ type: "refusal", refusal }] }, finish_reason: "stop" }] }),
      ),
    );
    for (const _ of ["events", "document", "parts"]) expect(textOf(await ask(url))).toBe(refusal);
  });

  test("without [DONE], or without the last blank line, is complete once its finish reason has arrived", async () => {
    const { url } = mock(bytes(sse(delta({ content: "a" }, "stop")).trimEnd()), bytes("data:[DONE]"));
    expect(finishOf(await ask(url))).toEqual(["stop"]);
    expect(finishOf(await ask(url))).toEqual(["stop"]);
  });

  test("as one JSON document, from a server that ignores `stream`, is accepted", async () => {
    const choices = [
      {
        message: { content: "whole", tool_calls: [{ function: { name: "look", arguments: { at: 1 } } }] },
        finish_reason: "stop",
      },
    ];
    const document = JSON.stringify({ choices, usage: { prompt_tokens: 4, completion_tokens: 2 } });
    const { url } = mock({
      kind: "raw",
      chunks: [" \n", document.slice(0, 20), document.slice(20)],
      contentType: "text/plain",
    });
    const events = await ask(url);
    expect(textOf(events)).toBe("whole");
    expect(callsOf(events)).toMatchObject([{ name: "look", input: '{"at":1}' }]);
    expect(finishOf(events)).toEqual(["tool_calls"]);
  });

  test("keeps its connection for the next request", async () => {
    const server = await raw((socket) => socket.answer(`${sse(delta({ content: "a" }, "stop"))}data: [DONE]\n\n`));
    const { stream } = engine(server.url);
    for (let i = 0; i < 5; i++) await collect(stream(QUESTION, new AbortController().signal));
    expect(server.connections()).toBe(1);
  });
});

describe("tool calls", () => {
  const calls = [
    { id: "a", name: "look", arguments: { at: "the sky" } },
    { id: "b", name: "ask", arguments: { who: "the owl" } },
  ];
  const expected = [
    { id: "a", name: "look", input: '{"at":"the sky"}' },
    { id: "b", name: "ask", input: '{"who":"the owl"}' },
  ];

  test.each([false, true])("are assembled from their deltas (each in one chunk: %p)", async (whole) => {
    const { url } = mock({ kind: "tools", calls, whole, text: "Let me see" });
    const events = await ask(url);
    expect(callsOf(events)).toEqual(expected);
    expect(textOf(events)).toBe("Let me see");
    expect(finishOf(events)).toEqual(["tool_calls"]);
  });

  test("are kept apart if their deltas interleave, share an index, or have none", async () => {
    const part = (fields: object) => delta({ tool_calls: [fields] });
    const one = { id: "a", function: { name: "look", arguments: '{"at":' } };
    const two = { id: "b", function: { name: "look", arguments: '{"at":2}' } };
    const rest = { function: { arguments: "1}" } };
    const { url } = mock(
      bytes(
        sse(
          part({ index: 0, ...one }),
          part({ index: 1, ...two }),
          part({ index: 0, ...rest }),
          delta({}, "tool_calls"),
        ),
      ),
      bytes(
        sse(part({ index: 0, ...one }), part({ index: 0, ...rest }), part({ index: 0, ...two }), delta({}, "stop")),
      ),
      bytes(sse(part(one), part(rest), part(two), delta({}, "stop"))),
    );
    for (let i = 0; i < 3; i++) {
      const events = await ask(url);
      expect(callsOf(events)).toEqual([
        { id: "a", name: "look", input: '{"at":1}' },
        { id: "b", name: "look", input: '{"at":2}' },
      ]);
      expect(finishOf(events)).toEqual(["tool_calls"]);
    }
  });

  test("without an id, or with one that is taken, get their own", async () => {
    const call = (index: number, id?: string) => ({ index, id, function: { name: `t${index}`, arguments: "" } });
    const { url } = mock(bytes(sse(delta({ tool_calls: [call(0), call(1, "x"), call(2, "x")] }, "tool_calls"))));
    const made = callsOf(await ask(url));
    expect(new Set(made.map(({ id }) => id)).size).toBe(3);
    expect(made.every(({ id, input }) => id.length > 0 && input === "{}")).toBe(true);
  });

  test("without a name are an error", async () => {
    const { url } = mock(
      bytes(sse(delta({ tool_calls: [{ index: 0, id: "a", function: { arguments: "{}" } }] }, "tool_calls"))),
    );
    expect((await failure(ask(url))).kind).toBe("broken");
  });
});
