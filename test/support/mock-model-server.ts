/**
 * An OpenAI-compatible model server that answers as scripted: at once (the default), slowly, incompletely or never.
 * In a test: `const mock = startMockModelServer()`, then `mock.script(...)`. As a process of its own:
 * `bun test/support/mock-model-server.ts --port 0` prints its URL; answers are then scripted by `POST /script`.
 */

export type MockAnswer =
  /**
   * Streams the tokens once `after` resolves, with `delayMs` before each; the head comes `headDelayMs` late. A `cut` is an
   * end without the last chunk: unlike a reset, it does not overtake what has not been read.
   */
  | {
      kind: "text";
      tokens: string[];
      delayMs?: number;
      headDelayMs?: number;
      after?: Promise<unknown>;
      finish?: string;
      usage?: {
        prompt_tokens: number;
        completion_tokens: number;
        prompt_tokens_details?: { cached_tokens: number };
      };
      ending?: "end" | "hang" | "cut";
    }
  /** Calls tools: arguments split over several deltas, or (`whole`) each call in one. */
  | {
      kind: "tools";
      calls: { id?: string; name: string; arguments: unknown }[];
      text?: string;
      whole?: boolean;
      finish?: string;
    }
  | { kind: "status"; status: number; body?: unknown; headers?: Record<string, string> }
  /** Accepts the request and never answers. */
  | { kind: "hang" }
  /** Sends these bodies unchanged, in one network write each. */
  | { kind: "raw"; chunks: (string | Uint8Array)[]; contentType?: string };

export interface MockRequest {
  path: string;
  headers: Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever it sent
  body: any;
}

export interface MockModelServer {
  /** With `/v1`, as a base URL. */
  readonly url: string;
  readonly port: number;
  /** Chat requests so far, oldest first. Empty with `record: false`. */
  readonly requests: MockRequest[];
  /** Scripts the answers to the next requests, one each; then the default applies again. */
  script(...answers: MockAnswer[]): void;
  /** Resolves when this many chat requests have arrived in all. */
  arrived(count: number): Promise<void>;
  /**
   * Resolves when a chat request that fits arrives, from now on: a number would also count those that come late, of runs that
   * were cancelled before.
   */
  arrival(fits: (request: MockRequest) => boolean): Promise<void>;
  /** Resolves when this many clients have left before their answer was complete. */
  left(count: number): Promise<void>;
  stop(): Promise<void>;
}

export interface MockOptions {
  port?: number;
  /** The answer if nothing is scripted; a function can choose it by request. */
  answer?: MockAnswer | ((request: MockRequest) => MockAnswer);
  /** What `/v1/models` lists; null for a server without such a list. */
  models?: object[] | null;
  /** `false` does not parse requests, for speed. */
  record?: boolean;
}

const MODELS = [{ id: "mock", object: "model" }];
const HELLO: MockAnswer = {
  kind: "text",
  tokens: ["Hello", ", ", "I am ", "the mock", " model", "."],
  usage: { prompt_tokens: 12, completion_tokens: 6 },
};
const SSE_HEADERS = { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" };
const JSON_HEADERS = { "Content-Type": "application/json" };
const DONE = "data: [DONE]\n\n";
const encoder = new TextEncoder();

export function startMockModelServer({
  port = 0,
  answer = HELLO,
  record = true,
  models = MODELS,
}: MockOptions = {}): MockModelServer {
  const queue: MockAnswer[] = [];
  const requests: MockRequest[] = [];
  const arrivals = counter();
  const departures = counter();
  const awaited = new Map<(request: MockRequest) => boolean, () => void>();
  const fixed = typeof answer === "function" ? null : answer;
  // The default answer's bytes are computed once, so that the mock is not the bottleneck of a benchmark.
  const instant =
    fixed?.kind === "text" && !fixed.delayMs && !fixed.headDelayMs && !fixed.after && !fixed.ending
      ? encoder.encode(sseOf(fixed))
      : null;

  const chat = async (request: Request, path: string): Promise<Response> => {
    const text = await request.text();
    let seen: MockRequest | null = null;
    if (record || fixed === null) {
      seen = { path, headers: Object.fromEntries(request.headers), body: JSON.parse(text) };
      if (record) requests.push(seen);
      for (const [fits, resolve] of awaited) if (fits(seen) && awaited.delete(fits)) resolve();
    }
    arrivals.add();
    const next = queue.shift();
    if (next === undefined && instant !== null && text.includes('"stream":true')) {
      return new Response(instant, { headers: SSE_HEADERS });
    }
    if (request.signal.aborted) departures.add();
    else request.signal.addEventListener("abort", departures.add, { once: true });
    const chosen = next ?? (typeof answer === "function" ? answer(seen ?? { path, headers: {}, body: {} }) : answer);
    if (chosen.kind === "text") {
      await chosen.after;
      if (chosen.headDelayMs) await Bun.sleep(chosen.headDelayMs);
    }
    return respond(chosen, text.includes('"stream":true'), request.signal);
  };

  const server = Bun.serve({
    port,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    development: false,
    async fetch(request) {
      const path = new URL(request.url).pathname;
      if (path === "/v1/chat/completions") return await chat(request, path);
      if (path === "/v1/models" && models) return Response.json({ object: "list", data: models });
      if (path === "/script") {
        queue.push(...((await request.json()) as MockAnswer[]));
        return Response.json({ queued: queue.length });
      }
      if (path === "/requests") return Response.json(requests);
      return Response.json({ error: { message: "no such path" } }, { status: 404 });
    },
  });

  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    port: server.port ?? 0,
    requests,
    script: (...answers) => void queue.push(...answers),
    arrived: arrivals.reach,
    arrival: (fits) => new Promise((resolve) => void awaited.set(fits, resolve)),
    left: departures.reach,
    stop: () => server.stop(true),
  };
}

function respond(answer: MockAnswer, stream: boolean, signal: AbortSignal): Response | Promise<Response> {
  switch (answer.kind) {
    case "hang":
      return new Promise(() => {});
    case "status": {
      const body = answer.body ?? { error: { message: `mock failure ${answer.status}` } };
      if (typeof body === "string") return new Response(body, { status: answer.status, headers: answer.headers ?? {} });
      return Response.json(body, { status: answer.status, headers: answer.headers ?? {} });
    }
    case "raw":
      return new Response(streamOf(answer.chunks, 0, "end", signal), {
        headers: { "Content-Type": answer.contentType ?? "text/event-stream" },
      });
    case "tools":
      return stream
        ? new Response(toolChunks(answer).map(frame).join("") + DONE, { headers: SSE_HEADERS })
        : new Response(JSON.stringify(toolDocument(answer)), { headers: JSON_HEADERS });
    case "text": {
      if (!stream) return new Response(JSON.stringify(textDocument(answer)), { headers: JSON_HEADERS });
      if (!answer.delayMs && (answer.ending ?? "end") === "end")
        return new Response(sseOf(answer), { headers: SSE_HEADERS });
      const pieces = answer.tokens.map((token) => frame(choice({ content: token })));
      if ((answer.ending ?? "end") === "end") pieces.push(lastOf(answer));
      return new Response(streamOf(pieces, answer.delayMs ?? 0, answer.ending ?? "end", signal), {
        headers: SSE_HEADERS,
      });
    }
  }
}

/** Writes each piece to the socket separately. It uses a direct stream, because any other may join pieces. */
function streamOf(
  pieces: (string | Uint8Array)[],
  delayMs: number,
  ending: "end" | "hang" | "cut",
  signal: AbortSignal,
): ReadableStream {
  return new ReadableStream({
    type: "direct",
    async pull(controller: ReadableStreamDirectController) {
      for (const piece of pieces) {
        if (delayMs > 0) await Bun.sleep(delayMs);
        if (signal.aborted) return;
        controller.write(piece);
        await controller.flush();
      }
      if (ending === "hang") await new Promise<void>((done) => signal.addEventListener("abort", () => done()));
      controller.close();
    },
  } as unknown as UnderlyingSource);
}

type TextAnswer = Extract<MockAnswer, { kind: "text" }>;
type ToolsAnswer = Extract<MockAnswer, { kind: "tools" }>;

const HEAD = { id: "chatcmpl-mock", object: "chat.completion.chunk", created: 1_700_000_000, model: "mock" };
const choice = (delta: object, finish: string | null = null): object => ({
  ...HEAD,
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const frame = (chunk: object): string => `data: ${JSON.stringify(chunk)}\n\n`;
const usageOf = (answer: TextAnswer): object => {
  const usage = answer.usage ?? { prompt_tokens: 1, completion_tokens: answer.tokens.length };
  return { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens };
};
const lastOf = (answer: TextAnswer): string =>
  frame(choice({}, answer.finish ?? "stop")) + frame({ ...HEAD, choices: [], usage: usageOf(answer) }) + DONE;
const sseOf = (answer: TextAnswer): string =>
  answer.tokens.map((token) => frame(choice({ content: token }))).join("") + lastOf(answer);

const documentOf = (message: object, finish: string, usage: object): object => ({
  ...HEAD,
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: finish }],
  usage,
});
const textDocument = (answer: TextAnswer): object =>
  documentOf({ content: answer.tokens.join("") }, answer.finish ?? "stop", usageOf(answer));

const callOf = (call: ToolsAnswer["calls"][number], index: number) => ({
  id: call.id ?? `call_mock_${index}`,
  type: "function",
  function: {
    name: call.name,
    arguments: typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments),
  },
});
const toolDocument = (answer: ToolsAnswer): object =>
  documentOf({ content: answer.text ?? null, tool_calls: answer.calls.map(callOf) }, answer.finish ?? "tool_calls", {
    prompt_tokens: 1,
    completion_tokens: 1,
  });

function toolChunks(answer: ToolsAnswer): object[] {
  const chunks: object[] = [];
  if (answer.text) chunks.push(choice({ content: answer.text }));
  answer.calls.map(callOf).forEach((call, index) => {
    if (answer.whole) {
      chunks.push(choice({ tool_calls: [{ index, ...call }] }));
      return;
    }
    const text = call.function.arguments;
    chunks.push(choice({ tool_calls: [{ index, ...call, function: { name: call.function.name, arguments: "" } }] }));
    for (let at = 0; at < text.length; at += 8) {
      chunks.push(choice({ tool_calls: [{ index, function: { arguments: text.slice(at, at + 8) } }] }));
    }
  });
  return [
    ...chunks,
    choice({}, answer.finish ?? "tool_calls"),
    { ...HEAD, choices: [], usage: { prompt_tokens: 9, completion_tokens: 7 } },
  ];
}

/** Counts events and lets others wait for a number of them. */
function counter(): { add: () => void; reach: (count: number) => Promise<void> } {
  let seen = 0;
  let waiting: { count: number; resolve: () => void }[] = [];
  return {
    add() {
      seen++;
      waiting = waiting.filter(({ count, resolve }) => seen < count || void resolve());
    },
    reach: (count) => new Promise((resolve) => (seen >= count ? resolve() : void waiting.push({ count, resolve }))),
  };
}

if (import.meta.main) {
  const { values } = (await import("node:util")).parseArgs({
    options: { port: { type: "string", default: "0" }, record: { type: "boolean", default: false } },
  });
  console.log(startMockModelServer({ port: Number(values.port), record: values.record }).url);
}
