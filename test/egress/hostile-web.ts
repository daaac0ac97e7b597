import { brotliCompressSync, constants, deflateSync, gzipSync } from "node:zlib";
import type { Socket, TCPSocketListener } from "bun";

/** A server that answers each path in its own, mostly hostile way. */
export interface HostileWeb {
  readonly port: number;
  /** The requests that arrived whole, as they were on the wire. */
  readonly requests: string[];
  readonly connections: number;
  /** Resolves when so many connections are open, or were closed by the client. */
  opened(count: number): Promise<void>;
  closed(count: number): Promise<void>;
  stop(): void;
}

type Wire = Socket<{ text: string; timer?: ReturnType<typeof setInterval> | undefined }>;

const ZEROS = Buffer.alloc(64 * 1024 * 1024);
const whole = (body: string | Buffer, headers = ""): Buffer =>
  Buffer.concat([
    Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n${headers}\r\n`),
    Buffer.from(body as string),
  ]);
const moved = (to: string, status = 302): string =>
  `HTTP/1.1 ${status} Moved\r\nLocation: ${to}\r\nContent-Length: 0\r\n\r\n`;
const encoded = (encoding: string, body: Buffer): Buffer => whole(body, `Content-Encoding: ${encoding}\r\n`);

/** Answers that are the same bytes for everybody. */
const ANSWERS: Record<string, () => string | Buffer> = {
  "/ok": () => whole("ok", "Set-Cookie: a=b\r\n"),
  "/chunked": () =>
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
  "/until-close": () => "HTTP/1.0 200 OK\r\n\r\nall of it",
  "/gzip": () => encoded("gzip", gzipSync("zipped")),
  "/deflate": () => encoded("deflate", deflateSync("zipped")),
  "/br": () => encoded("br", brotliCompressSync("zipped")),
  "/no-content": () => "HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n",
  "/bomb-gzip": () => encoded("gzip", gzipSync(ZEROS)),
  "/bomb-br": () => encoded("br", brotliCompressSync(ZEROS, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })),
  "/bomb-twice": () => encoded("gzip, gzip", gzipSync(gzipSync("x"))),
  "/zstd": () => encoded("zstd", Buffer.from("x")),
  "/gzip-broken": () => encoded("gzip", Buffer.from("not gzip at all")),
  "/gzip-cut": () => encoded("gzip", gzipSync("x".repeat(9_999)).subarray(0, 30)),
  "/large": () => "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
  "/huge-header": () => `HTTP/1.1 200 OK\r\nX: ${"a".repeat(100_000)}\r\n\r\n`,
  "/many-headers": () => `HTTP/1.1 200 OK\r\n${"X: y\r\n".repeat(20_000)}\r\n`,
  "/endless-interim": () => "HTTP/1.1 100 Continue\r\n\r\n".repeat(20_000),
  "/short": () => "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
  "/two-framings": () => "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  "/two-lengths": () => "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
  "/small-chunks": () => `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(3_000)}0\r\n\r\n`,
  "/fair-chunks": () =>
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${`40\r\n${"x".repeat(64)}\r\n`.repeat(3_000)}0\r\n\r\n`,
  "/bad-chunk": () => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
  "/folded-header": () => "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
  "/switching": () => "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
  "/not-http": () => "220 mail.example ESMTP\r\n",
};

export interface HostileWebOptions {
  hostname?: string;
  /** More answers, by path. */
  answers?: Record<string, (request: string) => string | Buffer>;
  tls?: { key: string; cert: string };
}

/** Paths that begin with `/hang` never get an answer; `/slow-head` and `/slow-body` never get all of it. */
export function startHostileWeb({ hostname = "127.0.0.1", answers = {}, tls }: HostileWebOptions = {}): HostileWeb {
  const requests: string[] = [];
  const [opened, closed] = [counter(), counter()];
  const server: TCPSocketListener<Wire["data"]> = Bun.listen({
    hostname,
    port: 0,
    ...(tls ? { tls } : {}),
    socket: {
      open(socket) {
        socket.data = { text: "" };
        opened.add();
      },
      close(socket) {
        clearInterval(socket.data.timer);
        closed.add();
      },
      error() {},
      data(socket, bytes) {
        socket.data.text += bytes.toString("latin1");
        const { text } = socket.data;
        const end = text.indexOf("\r\n\r\n");
        const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
        if (end < 0 || text.length < end + 4 + length) return;
        socket.data.text = "";
        requests.push(text);
        respond(socket, text, answers);
      },
      drain: (socket) => flush(socket),
    },
  });
  return {
    port: server.port,
    requests,
    get connections() {
      return opened.count();
    },
    opened: opened.reach,
    closed: closed.reach,
    stop: () => server.stop(true),
  };
}

const NOT_FOUND = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
const unsent = new WeakMap<Wire, Buffer>();

function respond(socket: Wire, request: string, answers: NonNullable<HostileWebOptions["answers"]>): void {
  const path = /^\w+ ([^ ?]*)/.exec(request)?.[1] ?? "";
  const to = /^\w+ \/to\?(?:(\d+),)?(\S*)/.exec(request);
  if (to) send(socket, moved(decodeURIComponent(to[2] ?? ""), Number(to[1] ?? 302)));
  else if (path === "/slow-head") drip(socket, "HTTP/1.1 200 OK\r\n", "X-A: b\r\n");
  else if (path === "/slow-body") drip(socket, "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", "x");
  else if (path === "/endless") send(socket, Buffer.concat([Buffer.from("HTTP/1.1 200 OK\r\n\r\n"), ZEROS]));
  else if (!path.startsWith("/hang")) send(socket, answers[path]?.(request) ?? ANSWERS[path]?.() ?? NOT_FOUND, true);
}

function drip(socket: Wire, head: string, piece: string): void {
  socket.write(head);
  socket.data.timer = setInterval(() => socket.write(piece), 5);
}

const ending = new WeakSet<Wire>();

function send(socket: Wire, bytes: string | Buffer, end = false): void {
  unsent.set(socket, Buffer.concat([unsent.get(socket) ?? Buffer.alloc(0), Buffer.from(bytes as string)]));
  if (end) ending.add(socket);
  flush(socket);
}

function flush(socket: Wire): void {
  const bytes = unsent.get(socket);
  if (bytes === undefined) return;
  const rest = bytes.subarray(Math.max(0, socket.write(bytes)));
  unsent.set(socket, rest);
  if (rest.length > 0) return;
  unsent.delete(socket);
  if (ending.has(socket)) socket.end();
}

function counter() {
  let seen = 0;
  let waiting: { count: number; resolve: () => void }[] = [];
  return {
    count: () => seen,
    add() {
      seen++;
      waiting = waiting.filter(({ count, resolve }) => seen < count || void resolve());
    },
    reach: (count: number) =>
      new Promise<void>((resolve) => (seen >= count ? resolve() : void waiting.push({ count, resolve }))),
  };
}
