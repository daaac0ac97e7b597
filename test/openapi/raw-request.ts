import { connect } from "node:net";

/** A request as its bytes are sent. */
export interface RawRequest {
  method: string;
  target: string;
  headers: [name: string, value: string][];
  body: Uint8Array | null;
  /** How the bytes are sent: with a length, in chunks, in pieces, cut off, or followed by a second request. */
  wire: "plain" | "chunked" | "pieces" | "truncated" | "pipelined";
}

export interface RawAnswer {
  status: number;
  headers: Headers;
  /** Null for an event stream, of which only the head is read. */
  body: string | null;
}

/** The result: answers in order, and why there are no more. */
export interface RawOutcome {
  answers: RawAnswer[];
  ended: "complete" | "closed" | "timeout";
}

const SECOND = (host: string): string => `GET /healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

/** The bytes of a request, split into writes. */
function writesOf(request: RawRequest, host: string): Buffer[] {
  const { method, target, headers, body, wire } = request;
  const own = headers.some(([name]) => name.toLowerCase() === "host") ? [] : [["Host", host]];
  const length =
    wire === "chunked"
      ? [["Transfer-Encoding", "chunked"]]
      : body === null && method !== "POST"
        ? []
        : [["Content-Length", String(body?.byteLength ?? 0)]];
  const lines = [...own, ...headers, ...length].map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const head = Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines}\r\n`, "latin1");
  const content = Buffer.from(body ?? []);
  switch (wire) {
    case "plain":
      return [Buffer.concat([head, content])];
    case "chunked": {
      const half = content.byteLength >> 1;
      const parts = [content.subarray(0, half), content.subarray(half)].filter((part) => part.byteLength > 0);
      const chunks = parts.map((part) =>
        Buffer.concat([Buffer.from(`${part.byteLength.toString(16)}\r\n`), part, Buffer.from("\r\n")]),
      );
      return [head, ...chunks, Buffer.from("0\r\n\r\n")];
    }
    case "pieces": {
      const all = Buffer.concat([head, content]);
      const step = Math.max(7, Math.ceil(all.byteLength / 12));
      return Array.from({ length: Math.ceil(all.byteLength / step) }, (_, at) =>
        all.subarray(at * step, (at + 1) * step),
      );
    }
    case "truncated":
      return [head, content.subarray(0, content.byteLength >> 1)];
    case "pipelined":
      return [Buffer.concat([head, content, Buffer.from(SECOND(host))])];
  }
}

/** Sends a request on its own connection and reads what arrives, for at most `timeoutMs`. */
export function sendRaw(url: string, request: RawRequest, timeoutMs: number): Promise<RawOutcome> {
  const { hostname, port, host } = new URL(url);
  const wanted = request.wire === "pipelined" ? 2 : 1;
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    let received: Buffer = Buffer.alloc(0);
    const answers: RawAnswer[] = [];
    const finish = (ended: RawOutcome["ended"]) => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ answers, ended });
    };
    const timer = setTimeout(() => finish("timeout"), timeoutMs);
    const read = (closed: boolean) => {
      for (;;) {
        const next = takeAnswer(received, answers.length === 0 && request.method === "HEAD", closed);
        if (!next) return;
        received = next.rest;
        if (next.answer.status === 100) continue;
        answers.push(next.answer);
        if (answers.length === wanted || next.answer.body === null) return finish("complete");
      }
    };
    socket.on("data", (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      read(false);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      read(true);
      finish("closed");
    });
    socket.on("connect", () => {
      for (const bytes of writesOf(request, host)) socket.write(bytes);
      if (request.wire === "truncated") socket.end();
    });
  });
}

/** The first complete answer in these bytes; null if there is none yet. */
function takeAnswer(bytes: Buffer, isHead: boolean, closed: boolean): { answer: RawAnswer; rest: Buffer } | null {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const [first = "", ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  // Of a connection that the client has half closed, the runtime may send an end of a stream without its head.
  if (closed && !first.startsWith("HTTP/")) return null;
  const headers = new Headers();
  for (const line of lines) headers.append(line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim());
  const status = Number(first.split(" ")[1]);
  const rest = bytes.subarray(end + 4);
  const answer = (body: string | null, taken: number) => ({
    answer: { status, headers, body },
    rest: rest.subarray(taken),
  });
  if (isHead || status === 304 || status === 100) return answer("", 0);
  if (headers.get("content-type")?.startsWith("text/event-stream")) return answer(null, 0);
  if (headers.get("transfer-encoding") === "chunked") {
    const last = rest.indexOf("0\r\n\r\n");
    return last < 0 ? null : answer(unchunked(rest), last + 5);
  }
  const length = headers.get("content-length");
  if (length === null) return closed ? answer(rest.toString(), rest.byteLength) : null;
  return rest.byteLength < Number(length) ? null : answer(rest.subarray(0, Number(length)).toString(), Number(length));
}

function unchunked(bytes: Buffer): string {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const line = bytes.indexOf("\r\n", at);
    const size = Number.parseInt(bytes.subarray(at, line).toString("latin1"), 16);
    if (!(size > 0)) return Buffer.concat(parts).toString();
    parts.push(bytes.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
}

/** The request as a shell command for people. What curl cannot send broken is complete in it. */
export function asCurl(url: string, { method, target, headers, body, wire }: RawRequest): string {
  const quote = (text: string): string =>
    /^[\x20-\x7e]*$/.test(text)
      ? `'${text.replaceAll("'", "'\\''")}'`
      : `$'${text.replaceAll(/[^\x20-\x26\x28-\x5b\x5d-\x7e]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, "0")}`)}'`;
  const sent = wire === "chunked" ? [...headers, ["Transfer-Encoding", "chunked"]] : headers;
  return [
    `curl -i --path-as-is -X ${quote(method)}`,
    ...sent.map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    ...(body ? [`--data-binary ${quote(Buffer.from(body).toString("latin1"))}`] : []),
    quote(url + target),
    ...(wire === "plain" || wire === "chunked" ? [] : [`# sent ${wire}`]),
  ].join(" ");
}
