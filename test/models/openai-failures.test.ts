import { afterEach, describe, expect, test } from "bun:test";
import type { ModelEvent } from "../../src/models/engine.ts";
import { streamFailure } from "../../src/models/openai/failure.ts";
import type { MockAnswer } from "../support/mock-model-server.ts";
import type { RawSocket } from "../support/raw-http-server.ts";
import {
  ask,
  bytes,
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

describe("a failure tells the operator what to do", () => {
  test.each([
    [401, "check ROOST_OPENAI_API_KEY"],
    [403, "check ROOST_OPENAI_API_KEY"],
    [404, "ollama pull qwen3:4b"],
    [302, "set ROOST_OPENAI_BASE_URL"],
    [400, "mock failure 400"],
  ])("%i: %s", async (status, words) => {
    const { url } = mock({ kind: "status", status });
    const { detail } = await failure(ask(url));
    expect(detail).toContain(words);
    expect(detail).toContain(new URL(url).origin);
    expect(detail).not.toContain("/v1/chat");
  });

  test("an answer that is nested without end is refused, before it is read", async () => {
    const call = `{"index":0,"function":{"name":"now","arguments":{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}}}`;
    const { url } = mock(bytes(`data: {"choices":[{"index":0,"delta":{"tool_calls":[${call}]}}]}\n\n`));
    expect((await failure(ask(url))).detail).toContain("sent invalid JSON");
  });

  test("however deep its error is nested: it is not written again, which would take half a minute", async () => {
    const body = `{"error":{"message":${"[".repeat(100_000)}"deep words"${"]".repeat(100_000)}}}`;
    const { url } = mock({ kind: "status", status: 400, body });
    expect((await failure(ask(url))).detail.length).toBeLessThan(500);
  });

  describe("without the key", () => {
    const told = (apiKey: string, message: string) =>
      streamFailure(
        { origin: "http://127.0.0.1", model: "m", apiKey, keySetting: "", urlSetting: "", prompt: () => "" },
        { message },
      ).detail ?? "";

    test("or any part of it, wherever its words are cut", () => {
      const key = "k".repeat(100) + "y".repeat(200);
      for (let before = 3_990; before < 4_700; before += 7) {
        expect(told(key, `${" ".repeat(before)}${key}${"a".repeat(5_000)}`)).not.toMatch(/[ky]{3}/);
        // Those that are replaced bring what comes after them closer.
        expect(told(key, `${key.repeat(Math.floor(before / 300))} ${key}${"a".repeat(5_000)}`)).not.toMatch(/[ky]{3}/);
      }
      expect(told(key, `no rights for ${key}`)).toEndWith("failed: no rights for …");
      expect(told(key, `no rights for ${`${key} `.repeat(20)}`)).toContain("failed: no rights for … … …");
    });

    test("whatever repeats the key without end", () => {
      // Looking for it in all of the words takes minutes.
      expect(told(`${"b".repeat(4_000)}a${"b".repeat(4_000)}`, "b".repeat(200_000_000))).toContain("failed: bbb");
    });
  });

  test.each([
    [{ error: "plain words" }, "plain words"],
    [{ detail: [{ msg: "field required" }] }, "field required"],
    ["<html><h1>Bad</h1></html>", "(400)."],
    [{ error: { message: "x".repeat(5000) } }, "…"],
  ])("whatever format the server's error has: %p", async (body, words) => {
    const { url } = mock({ kind: "status", status: 400, body });
    const { detail } = await failure(ask(url));
    expect(detail).toContain(words);
    expect(detail.length).toBeLessThan(500);
  });

  test.each([
    [{ error: { code: "context_length_exceeded", message: "Too long" } }, undefined],
    [
      {
        error: {
          message:
            "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens.",
        },
      },
      { promptTokens: 5000, limitTokens: 4096 },
    ],
    [
      { error: { type: "exceed_context_size_error", message: "too large", n_prompt_tokens: 900, n_ctx: 512 } },
      { promptTokens: 900, limitTokens: 512 },
    ],
    [
      { error: { message: "request (900 tokens) exceeds the available context size (512 tokens), try increasing it" } },
      { promptTokens: 900, limitTokens: 512 },
    ],
  ])("a prompt over the model's context is a context overflow: %p", async (body, overflow) => {
    const { url } = mock({ kind: "status", status: 400, body }, bytes(sse(body)));
    for (let i = 0; i < 2; i++) {
      const error = await failure(ask(url));
      expect(error.kind).toBe("context_overflow");
      expect(error.overflow).toEqual(overflow);
    }
  });

  test("an error inside the stream fails the answer, with the server's words for the operator only", async () => {
    const { url } = mock(
      bytes(sse(delta({ content: "a" }), { error: { message: `out of\nmemory ${KEY}` } })),
      bytes('error: {"message":"out of memory"}\n\n'),
    );
    for (let i = 0; i < 2; i++) {
      const error = await failure(ask(url));
      expect(error.kind).toBe("broken");
      expect(error.detail).toContain("out of memory");
      expect(error.message).not.toContain("memory");
    }
  });

  test("an answer that is not a model's, such as a web page, points to the base URL", async () => {
    const { url } = mock(
      { kind: "raw", chunks: ["<html>\n\nhello</html>"], contentType: "text/html" },
      bytes('{"hello":1}'),
      bytes(""),
    );
    for (let i = 0; i < 3; i++) {
      const error = await failure(ask(url));
      expect(error.kind).toBe("broken");
      expect(error.detail).toContain("check that ROOST_OPENAI_BASE_URL");
    }
  });
});

describe("a failure tells a tenant what to do, and nothing about the server", () => {
  test.each([
    [401, "ask the host's operator"],
    [404, 'does not know the model "qwen3:4b": choose another'],
    [429, "try again in a while"],
    [500, "try again"],
    [400, "refused the request"],
  ])("%i: %s", async (status, words) => {
    const { url } = mock({ kind: "status", status });
    const many = Array.from({ length: 3 }, () => ({ kind: "status", status }) as const);
    const { message } = await failure(ask(status === 429 || status === 500 ? mock(...many).url : url));
    expect(message).toContain(words);
  });
});

describe("a server cannot break the host", () => {
  const MIB = 1024 * 1024;

  test("with malformed JSON, an endless line, an endless event, an endless answer or endless calls", async () => {
    const big = sse(delta({ content: "x".repeat(MIB / 2) }));
    for (const answer of [
      bytes("data: {nope}\n\n"),
      bytes("data: 7\n\n"),
      bytes("data: ", ..."xxxx".split("").map((letter) => letter.repeat(MIB / 2))),
      bytes(...Array.from({ length: 4 }, () => `data: ${"x".repeat(MIB / 2)}\n`)),
      bytes(...Array.from({ length: 20 }, () => big)),
      bytes(...Array.from({ length: 20 }, (_, at) => (at === 0 ? "{" : "x".repeat(MIB)))),
      bytes(
        sse(delta({ tool_calls: Array.from({ length: 200 }, (_, index) => ({ index, function: { name: "t" } })) })),
      ),
    ]) {
      const server = mock(answer);
      expect((await failure(ask(server.url))).kind).toBe("broken");
    }
  });

  test("by an answer far longer than was asked for; one that fits is whole, also if it is one call", async () => {
    const answerOf = (length: number) => {
      const text = '"\n'.repeat(length / 2);
      return bytes(sse(delta({ tool_calls: [{ index: 0, function: { name: "t", arguments: text } }] }, "tool_calls")));
    };
    for (const [answerTokens, length] of [
      [100, 128 * 1024],
      [8_192, 256 * 1024],
      [1_000_000, MIB],
    ] as const) {
      const [fits, exceeds] = [mock(answerOf(length - 100)), mock(answerOf(length + 2))];
      const calls = (await ask(fits.url, { answerTokens })).flatMap((event) =>
        event.type === "tool_call" ? [event.call.input.length] : [],
      );
      expect(calls).toEqual([length - 100]);
      expect((await failure(ask(exceeds.url, { answerTokens }))).kind).toBe("broken");
    }
  });

  test("by ending before its answer does: what arrived is delivered, and nothing is retried", async () => {
    for (const breakOff of ["end", "reset"] as const) {
      let socket: RawSocket | undefined;
      const server = await raw((accepted) => {
        socket = accepted;
        socket.begin(sse(delta({ content: "half way" })));
      });
      const got: ModelEvent[] = [];
      const read = async () => {
        for await (const batch of engine(server.url).stream(QUESTION, new AbortController().signal)) {
          got.push(...batch);
          socket?.[breakOff]();
        }
      };
      expect((await failure(read())).kind).toBe("broken");
      expect(got).toEqual([{ type: "text", text: "half way" }]);
      expect(server.requests()).toBe(1);
    }
    const { url } = mock(bytes(sse(delta({ content: "ends well, but unfinished" }))));
    expect((await failure(ask(url))).kind).toBe("broken");
  });

  test("by failing in the network chunk of its last words: they are delivered, as if they had come before", async () => {
    const said = sse(delta({ content: "as far " }), delta({ content: "as here" }));
    for (const ending of [
      sse({ error: { message: "engine crashed", code: 500 } }),
      "data: {nope}\n\n",
      sse(delta({ content: "x".repeat(2 * MIB) })),
      // The connection is closed within an event.
      "data: {",
      sse(delta({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] }, "tool_calls")),
    ]) {
      const got: ModelEvent[] = [];
      const read = async () => {
        const { url } = mock(bytes(said + ending));
        for await (const batch of engine(url).stream(QUESTION, new AbortController().signal)) got.push(...batch);
      };
      expect((await failure(read())).kind).toBe("broken");
      expect(got).toEqual([{ type: "text", text: "as far as here" }]);
    }
  });

  test("by silence, before the headers or within the answer, which is not retried", async () => {
    const answers: MockAnswer[] = [{ kind: "hang" }, { kind: "text", tokens: ["a"], ending: "hang" }];
    for (const answer of answers) {
      const server = mock(answer);
      const error = await failure(ask(server.url, { idleTimeoutMs: 5_000 }));
      expect(error.kind).toBe("silent");
      await server.left(1);
      expect(server.requests.length).toBe(1);
    }
  });

  test("by silence after its last word: the answer is complete", async () => {
    const server = await raw((socket) => socket.begin(sse(delta({ content: "a" }, "stop"))));
    expect(finishOf(await ask(server.url, { idleTimeoutMs: 15_000 }))).toEqual(["stop"]);
  });

  test("by holding the connection open after [DONE]", async () => {
    const server = await raw((socket) => socket.begin(`${sse(delta({ content: "a" }, "stop"))}data: [DONE]\n\n`));
    expect(finishOf(await ask(server.url))).toEqual(["stop"]);
  });

  test("and a slow reader does not count as a silent server", async () => {
    const { url } = mock({ kind: "text", tokens: ["a", "b", "c"], delayMs: 1 });
    const got: ModelEvent[] = [];
    // Longer than a busy machine takes for an answer, and shorter than the reader takes for its beginning.
    for await (const batch of engine(url, { idleTimeoutMs: 3_000 }).stream(QUESTION, new AbortController().signal)) {
      if (got.length === 0) await new Promise((resolve) => setTimeout(resolve, 3_500));
      got.push(...batch);
    }
    expect(textOf(got)).toBe("abc");
  });
});
