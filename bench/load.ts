/**
 * A load from a process of its own: `connections` sockets, each sending its request again when the answer is complete.
 * Raw sockets, because a client that costs more than the server would measure itself. Reads a `Load` as its argument,
 * prints a `LoadResult`.
 */
export interface Load {
  url: string;
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
  /** `{agent}` in `path` and `body` becomes the one of these that has the connection's number. */
  agents?: string[];
  connections: number;
  /** Ends after this many answers or seconds, whichever comes first. */
  requests: number;
  seconds: number;
  /** The answer is complete at this text; if absent, by its Content-Length. */
  until?: string;
  /** The time to this text counts as latency. */
  first?: string;
}

export interface LoadResult {
  perSecond: number;
  latenciesMs: number[];
  failures: number;
}

/** Runs the load in a child process. */
export async function runLoad(load: Load): Promise<LoadResult> {
  const child = Bun.spawn([process.execPath, import.meta.path, JSON.stringify(load)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return JSON.parse(await new Response(child.stdout).text()) as LoadResult;
}

async function main(load: Load): Promise<LoadResult> {
  const { hostname, port, host } = new URL(load.url);
  const latenciesMs: number[] = [];
  let failures = 0;
  let started = 0;
  const begin = performance.now();
  const over = () => started >= load.requests || performance.now() - begin > load.seconds * 1000;

  const one = (number: number) =>
    new Promise<void>((resolve, reject) => {
      const agent = load.agents?.[number] ?? "";
      const path = load.path.replace("{agent}", agent);
      const body = (load.body ?? "").replace("{agent}", agent);
      const head = Object.entries({ Host: host, "Content-Length": String(body.length), ...load.headers })
        .map(([name, value]) => `${name}: ${value}\r\n`)
        .join("");
      const request = `${load.method} ${path} HTTP/1.1\r\n${head}\r\n${body}`;
      let sentAt = 0;
      let firstAt = 0;
      let received = "";
      const send = (socket: Bun.Socket) => {
        started++;
        received = "";
        firstAt = 0;
        sentAt = performance.now();
        socket.write(request);
      };
      void Bun.connect({
        hostname,
        port: Number(port),
        socket: {
          open: send,
          data(socket, bytes) {
            received += bytes.toString("latin1");
            if (load.first !== undefined && firstAt === 0 && received.includes(load.first)) firstAt = performance.now();
            if (!isWhole(received, load.until)) return;
            latenciesMs.push((firstAt || performance.now()) - sentAt);
            if (!/^HTTP\/1\.1 2/.test(received)) failures++;
            if (!over()) return send(socket);
            socket.end();
            resolve();
          },
          close: () => resolve(),
          error: (_, error) => reject(error),
        },
      });
    });
  await Promise.all(Array.from({ length: load.connections }, (_, number) => one(number)));
  return { perSecond: (latenciesMs.length * 1000) / (performance.now() - begin), latenciesMs, failures };
}

function isWhole(text: string, until: string | undefined): boolean {
  if (until !== undefined && /^HTTP\/1\.1 2/.test(text)) return text.includes(until);
  const head = text.indexOf("\r\n\r\n");
  if (head < 0) return false;
  const length = /content-length: (\d+)/i.exec(text.slice(0, head))?.[1];
  return length === undefined ? text.endsWith("0\r\n\r\n") : text.length >= head + 4 + Number(length);
}

if (import.meta.main) console.log(JSON.stringify(await main(JSON.parse(process.argv[2] ?? "{}") as Load)));
