import { connect } from "node:net";

export interface RawAnswer {
  status: number;
  headers: Headers;
  body: string;
}

/** Sends these bytes to the host as they are, and reads one answer: for requests that no client would send. */
export function rawRequest(url: string, ...parts: (string | Uint8Array)[]): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0);
    const socket = connect(Number(port), hostname, () => {
      for (const part of parts) socket.write(part);
    });
    socket.on("data", (bytes: Buffer) => {
      received = Buffer.concat([received, Buffer.from(bytes)]);
      const answer = parseAnswer(received);
      if (!answer) return;
      resolve(answer);
      socket.destroy();
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`the connection ended after ${JSON.stringify(received.toString())}`)));
  });
}

/** The answer once it is complete; undefined until then. */
function parseAnswer(received: Buffer): RawAnswer | undefined {
  const headEnd = received.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const [statusLine = "", ...lines] = received.subarray(0, headEnd).toString().split("\r\n");
  const headers = new Headers(lines.map((line) => line.split(/: ?(.*)/s).slice(0, 2) as [string, string]));
  const body = received.subarray(headEnd + 4);
  if (body.byteLength < Number(headers.get("content-length") ?? 0)) return undefined;
  return { status: Number(statusLine.split(" ")[1]), headers, body: body.toString() };
}
