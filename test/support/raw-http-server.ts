/** A raw TCP server that answers byte by byte, breaks off or resets: for what no HTTP library would send. */
export interface RawSocket {
  /** A whole chunked answer; the connection stays open for the next request. */
  answer(body: string): void;
  /** The head and the first part of a chunked body that never continues. */
  begin(body: string): void;
  end(): void;
  /** Sends head and body with one write per byte; then closes. */
  dribble(body: string): void;
  reset(): void;
  headThenReset(): void;
}

export interface RawServer {
  /** With `/v1`, as a base URL. */
  readonly url: string;
  connections(): number;
  requests(): number;
  stop(): Promise<void>;
}

const HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`;
const chunk = (body: string): string => `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n`;

/** `respond` is called once for each request, numbered from 1 over all connections, with its head and body. */
export async function startRawServer(
  respond: (socket: RawSocket, request: number, text: string) => void,
): Promise<RawServer> {
  let connections = 0;
  let requests = 0;
  const server = Bun.listen<{ received: string }>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        connections++;
        socket.data = { received: "" };
        socket.setNoDelay(true);
      },
      data(socket, bytes) {
        socket.data.received += bytes.toString("latin1");
        const head = socket.data.received.indexOf("\r\n\r\n");
        const length = Number(/content-length: (\d+)/i.exec(socket.data.received)?.[1] ?? 0);
        if (head === -1 || socket.data.received.length < head + 4 + length) return;
        const text = socket.data.received;
        socket.data.received = "";
        respond(
          {
            answer: (body) => void socket.write(`${CHUNKED}${chunk(body)}0\r\n\r\n`),
            begin: (body) => void socket.write(CHUNKED + chunk(body)),
            end: () => void socket.end(),
            dribble: (body) => {
              const all = Buffer.from(`${HEAD}Connection: close\r\n\r\n${body}`);
              let at = 0;
              const next = () => {
                if (at === all.length) return void socket.end();
                at += socket.write(all, at, 1);
                socket.flush();
                setImmediate(next);
              };
              next();
            },
            reset: () => socket.terminate(),
            headThenReset: () => {
              socket.write(CHUNKED);
              socket.flush();
              setImmediate(() => socket.terminate());
            },
          },
          ++requests,
          text,
        );
      },
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    connections: () => connections,
    requests: () => requests,
    stop: async () => server.stop(true),
  };
}
