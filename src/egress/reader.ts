import type { Socket } from "node:net";
import { EgressError } from "./refusal.ts";

/** Reads a socket piece by piece. */
export interface SocketReader {
  /** The next line, without its end. Throws `EgressError` if it is longer than `max` bytes. */
  line(max: number): Promise<string>;
  /** Between 1 and `max` bytes; none at the end of the stream. */
  some(max: number): Promise<Buffer>;
}

const NOTHING = Buffer.alloc(0);

/** The socket is paused while nobody reads, so that a fast server cannot fill the host's memory. */
export function createSocketReader(socket: Socket, signal: AbortSignal): SocketReader {
  let held: Buffer = NOTHING;
  let ended = false;
  let failure: Error | undefined;
  let wake = () => {};
  socket.on("data", (bytes: Buffer) => {
    held = held.length > 0 ? Buffer.concat([held, bytes]) : bytes;
    socket.pause();
    wake();
  });
  for (const event of ["end", "close"]) {
    socket.on(event, () => {
      ended = true;
      wake();
    });
  }
  socket.on("error", (error: Error) => {
    failure = error;
    wake();
  });
  const onAbort = () => wake();
  signal.addEventListener("abort", onAbort, { once: true });
  // A signal may outlive many connections.
  socket.on("close", () => signal.removeEventListener("abort", onAbort));

  /** False at the end of the stream. */
  async function more(): Promise<boolean> {
    const before = held.length;
    while (held.length === before) {
      signal.throwIfAborted();
      if (failure) throw new EgressError("broken", `the connection broke: ${failure.message}`, { cause: failure });
      if (ended) return false;
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      socket.resume();
      await promise;
    }
    return true;
  }

  return {
    async line(max) {
      for (let from = 0; ; ) {
        const at = held.indexOf(0x0a, from);
        if (at > max || (at < 0 && held.length > max)) {
          throw new EgressError("size", "a line of the answer's head is too long");
        }
        if (at >= 0) {
          const text = held.toString("latin1", 0, at);
          held = held.subarray(at + 1);
          return text.endsWith("\r") ? text.slice(0, -1) : text;
        }
        from = held.length;
        if (!(await more()))
          throw new EgressError("protocol", "the server closed the connection before its answer's end");
      }
    },
    async some(max) {
      if (held.length === 0 && !(await more())) return NOTHING;
      const bytes = held.subarray(0, max);
      held = held.subarray(bytes.length);
      return bytes;
    },
  };
}
