import { connect } from "node:net";

/** A raw connection: hundreds can be open at once, from different addresses, with bodies held back. */
export interface Connection {
  /** The status of the answer; 0 if it was closed without one. */
  answered: Promise<number>;
  /** What has arrived so far. */
  received(): string;
  ended: Promise<void>;
  /** Resolves when all of it was sent, or the other end has closed. */
  write(bytes: string | Uint8Array): Promise<void>;
  destroy(): void;
}

export interface RequestHead {
  method?: string;
  path: string;
  headers?: Record<string, string | number>;
  /** The client's address, of 127.0.0.0/8. */
  from?: string;
  body?: string;
}

const PIECE_BYTES = 64 * 1024;

/** Connects and sends a head and the body, if there is one. */
export function open(url: string, { method = "GET", path, headers = {}, from, body = "" }: RequestHead): Connection {
  const { hostname, port, host } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), ...(from ? { localAddress: from } : {}) });
  const answered = Promise.withResolvers<number>();
  const ended = Promise.withResolvers<void>();
  let text = "";
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
    const status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1];
    if (status !== undefined) answered.resolve(Number(status));
  });
  const over = Promise.race([answered.promise, ended.promise]);
  let isOver = false;
  void over.then(() => (isOver = true));
  socket.on("error", () => {});
  socket.on("close", () => {
    answered.resolve(0);
    ended.resolve();
  });
  const length = body === "" ? {} : { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) };
  const all = Object.entries({ Host: host, ...length, ...headers }).map(([name, value]) => `${name}: ${value}`);
  socket.write(`${[`${method} ${path} HTTP/1.1`, ...all, "", ""].join("\r\n")}${body}`);
  return {
    answered: answered.promise,
    received: () => text,
    ended: ended.promise,
    async write(bytes) {
      const whole = Buffer.from(bytes as Uint8Array);
      // In pieces, one after the other, so that unread data does not pile up here.
      for (let at = 0; at < whole.byteLength && !isOver; at += PIECE_BYTES) {
        const taken = Promise.withResolvers<void>();
        socket.write(whole.subarray(at, at + PIECE_BYTES), () => taken.resolve());
        await Promise.race([taken.promise, over]);
        // An answer that has arrived already is read first.
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    destroy: () => void socket.destroy(),
  };
}

/** Sends one request from this address, on its own connection. */
export async function askFrom(
  from: string,
  url: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  const connection = open(url, {
    method: body ? "POST" : "GET",
    path,
    from,
    headers: { Connection: "close", ...headers },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const status = await connection.answered;
  await connection.ended;
  const text = connection.received();
  return { status, text: text.slice(text.indexOf("\r\n\r\n") + 4) };
}

/** The answers that have arrived, once there are this many. */
export async function answersOf(connections: Connection[], count = 0): Promise<number[]> {
  const answers: number[] = [];
  const enough = Promise.withResolvers<void>();
  for (const { answered } of connections) {
    void answered.then((status) => {
      if (answers.push(status) >= count) enough.resolve();
    });
  }
  if (count > 0) await enough.promise;
  else await Promise.resolve();
  return answers;
}

/** How many answers there were of each status. */
export function countsOf(statuses: number[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** Runs at most this many at once; each gets its number. */
export async function inLanes<T>(lanes: number, count: number, work: (at: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      while (next < count) {
        const at = next++;
        results[at] = await work(at);
      }
    }),
  );
  return results;
}
