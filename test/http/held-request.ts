import { connect } from "node:net";

/** A request that lacks its last byte. */
export interface HeldRequest {
  /** Sends the last byte and returns the answer's status. */
  release(): Promise<{ status: number }>;
  /** The answer's status without the last byte. */
  answered: Promise<{ status: number }>;
  destroy(): void;
}

/** Sends a request without the last byte of its body. Resolves when the rest was sent. */
export async function hold(
  url: string,
  method: string,
  path: string,
  body: string,
  headers: Record<string, string> = {},
): Promise<HeldRequest> {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname);
  const answered = Promise.withResolvers<{ status: number }>();
  answered.promise.catch(() => {});
  let text = "";
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
    const status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1];
    if (status !== undefined) answered.resolve({ status: Number(status) });
  });
  socket.on("error", answered.reject);
  socket.on("close", () => answered.reject(new Error("the connection was closed without an answer")));
  const head = Object.entries({
    Host: host,
    "Content-Type": "application/json",
    "Content-Length": String(Buffer.byteLength(body)),
    ...headers,
  });
  const lines = [`${method} ${path} HTTP/1.1`, ...head.map(([name, value]) => `${name}: ${value}`), "", ""];
  await new Promise<void>((resolve) => socket.write(lines.join("\r\n") + body.slice(0, -1), () => resolve()));
  return {
    answered: answered.promise,
    async release() {
      socket.write(body.slice(-1));
      try {
        return await answered.promise;
      } finally {
        socket.destroy();
      }
    },
    destroy: () => void socket.destroy(),
  };
}
