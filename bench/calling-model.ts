import type { Socket } from "bun";

/**
 * A model server that answers at once, and calls tools where a message says so: `once: NAME` for one step, `attack: NAME`
 * for as long as it is asked. It is also the web server that never answers, or drips, and at a port of its own one that
 * answers in tiny chunks. Run as a process of its own, which prints its URLs.
 */
interface Call {
  name: string;
  arguments: unknown;
}

/** As many as the host takes of one answer. */
const MAX_CALLS = 128;
const KIB = 1024;
const DRIP_MS = 100;
/** Of each answer in tiny chunks: the most that agents accept. */
const CHUNKED_BYTES = 5 * KIB * KIB;
const encoder = new TextEncoder();
const head = { id: "chatcmpl-hostile", object: "chat.completion", created: 1_700_000_000, model: "mock" };
const many = (count: number, call: (at: number) => Call): Call[] => Array.from({ length: count }, (_, at) => call(at));

/** No two calls are the same: an agent that repeats itself is stopped. */
let turn = 0;
const blank = "x".repeat(31 * KIB);
const CALLS: Record<string, (url: string) => Call[]> = {
  one: () => [{ name: "now", arguments: {} }],
  four: () => many(4, () => ({ name: "now", arguments: {} })),
  loop: () => many(4, (at) => ({ name: "run_javascript", arguments: { code: `for (;;); // ${turn} ${at}` } })),
  endless: () => [{ name: "run_javascript", arguments: { code: `while (true) {} // ${turn}` } }],
  fill: () => many(4, (at) => ({ name: "write_file", arguments: { name: `fill/${turn}-${at}.md`, text: blank } })),
  flood: () => many(MAX_CALLS, (at) => ({ name: "list_files", arguments: { folder: `none/${turn}/${at}` } })),
  plan: () => many(MAX_CALLS, (at) => ({ name: "update_plan", arguments: { items: [{ text: `${turn} ${at}` }] } })),
  read: () =>
    many(MAX_CALLS, (at) => ({
      name: "read_file",
      arguments: { name: "long.md", toLine: 1_000 + turn * MAX_CALLS + at },
    })),
  fetch: (url) =>
    many(MAX_CALLS, (at) =>
      at % 2
        ? { name: "web_fetch", arguments: { url: `${url}/drip/${turn}-${at}` } }
        : { name: "http_request", arguments: { method: "GET", url: `${url}/hang/${turn}-${at}` } },
    ),
  chunks: () =>
    many(MAX_CALLS, (at) =>
      at % 2
        ? { name: "web_fetch", arguments: { url: `${chunkedUrl}/64/${turn}-${at}` } }
        : { name: "http_request", arguments: { method: "GET", url: `${chunkedUrl}/1/${turn}-${at}` } },
    ),
};

const chunk = (delta: object, reason: string | null): string =>
  `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;

const completion = (message: object, reason: string) =>
  encoder.encode(
    JSON.stringify({
      ...head,
      choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: reason }],
      usage: { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 },
    }),
  );

/** In pieces, as a server answers that others use too. */
const HELLO = encoder.encode(
  `${["Hello", " there", "."].map((content) => chunk({ content }, null)).join("")}${chunk({}, "stop")}data: [DONE]\n\n`,
);
const MARK = /(attack|once): ([a-z]+)$/;
const MARK_ENDS = Buffer.from('"}');

/**
 * What the last message of a user asks for; null for text. The rest of a request is not read: it may have megabytes, and
 * this is not what is measured.
 */
function askedIn(body: Buffer): string | null {
  const at = body.lastIndexOf('"role":"user"');
  const end = body.indexOf(MARK_ENDS, at);
  const [, how, name] = MARK.exec(body.toString("latin1", at, Math.min(end, at + 100))) ?? [];
  if (name === undefined || how === "attack") return name ?? null;
  return body.includes('"role":"tool"', at) ? null : name;
}

async function answer(request: Request, origin: string): Promise<Response> {
  const asked = askedIn(Buffer.from(await request.arrayBuffer()));
  if (asked === "hang") return await new Promise(() => {});
  const calls = asked === null ? undefined : CALLS[asked]?.(origin);
  turn++;
  if (calls === undefined) return new Response(HELLO, { headers: { "Content-Type": "text/event-stream" } });
  const written = calls.map(({ name, arguments: input }, at) => ({
    id: `call_${turn}_${at}`,
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));
  return new Response(completion({ content: null, tool_calls: written }, "tool_calls"), {
    headers: { "Content-Type": "application/json" },
  });
}

const drip = (): ReadableStream =>
  new ReadableStream({
    async pull(controller) {
      await Bun.sleep(DRIP_MS);
      controller.enqueue(encoder.encode("."));
    },
  });

const inChunks = (bytes: number): Buffer =>
  Buffer.concat([
    Buffer.from("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"),
    Buffer.alloc(
      (CHUNKED_BYTES / bytes) * (bytes.toString(16).length + 4 + bytes),
      `${bytes.toString(16)}\r\n${"x".repeat(bytes)}\r\n`,
    ),
    Buffer.from("0\r\n\r\n"),
  ]);
const CHUNKED = { "1": inChunks(1), "64": inChunks(64) };

/** Sends what it has, as fast as the client reads. */
const chunked = Bun.listen<{ left: Buffer } | undefined>({
  port: 0,
  hostname: "127.0.0.1",
  socket: {
    data(socket, request) {
      socket.data = { left: request.includes("GET /64/") ? CHUNKED["64"] : CHUNKED["1"] };
      send(socket);
    },
    drain: (socket) => send(socket),
    error() {},
  },
});
const chunkedUrl = `http://127.0.0.1:${chunked.port}`;

function send(socket: Socket<{ left: Buffer } | undefined>): void {
  if (!socket.data) return;
  const { left } = socket.data;
  socket.data.left = left.subarray(Math.max(0, socket.write(left)));
}

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 0,
  async fetch(request) {
    const { pathname, origin } = new URL(request.url);
    if (pathname.startsWith("/hang")) return await new Promise(() => {});
    if (pathname.startsWith("/drip")) return new Response(drip(), { headers: { "Content-Type": "text/plain" } });
    if (pathname === "/v1/models") return Response.json({ object: "list", data: [{ id: "mock", object: "model" }] });
    return await answer(request, origin);
  },
});
console.log(`${server.url.origin}/v1 ${chunkedUrl}`);
