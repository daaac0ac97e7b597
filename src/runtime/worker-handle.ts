import { startThread } from "../lib/open-files.ts";
import { createOutbox, type HostToWorker, linesOf } from "./protocol.ts";

export interface WorkerHandle {
  send(message: HostToWorker): void;
  end(): void;
}

/** In the binary, the worker is a second entry point. */
const WORKER_ADDRESS = import.meta.url.includes("$bunfs")
  ? "./runtime/worker.ts"
  : new URL("./worker.ts", import.meta.url).href;

/**
 * Starts an instance's worker as a thread with an empty environment. `onDeath` is called for any end except `end()`.
 */
export function spawnWorker(
  listener: {
    /** Each is a `WorkerToHost` as JSON. */
    onMessages(texts: readonly string[]): void;
    onDeath(reason: string): void;
  },
  address = WORKER_ADDRESS,
): WorkerHandle {
  const worker = startThread(address);
  let ended = false;
  const sendLine = createOutbox((lines) => ended || worker.postMessage(lines));
  const died = (reason: string) => {
    if (ended) return;
    ended = true;
    worker.terminate();
    listener.onDeath(reason);
  };
  worker.onmessage = ({ data }: MessageEvent<string>) => listener.onMessages(linesOf(data));
  worker.onerror = ({ message }) => died(message);
  worker.addEventListener("close", () => died("it exited"));
  return {
    // Messages sent after the end are dropped.
    send: (message) => ended || sendLine(JSON.stringify(message)),
    end() {
      ended = true;
      worker.terminate();
    },
  };
}
