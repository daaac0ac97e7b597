import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { compile, HERE } from "./compile.ts";

/** By then the server has begun what it puts off until after its start. */
const SETTLED_MS = 500;
/** Only ends what hangs. */
const DEADLINE_MS = 60_000;

/**
 * Finds out which functions a start of the server uses: compiles it in `folder`, for this machine, and starts it there.
 * Returns the path of a file for `compile`, which suits every platform.
 */
export async function recordStart(folder: string): Promise<string> {
  const binary = join(folder, "to-record");
  const data = join(folder, "data");
  await compile(binary, HERE, null);
  // The first start also makes the data folder, unlike all others.
  await runServer(binary, data, folder, 0);
  const pid = await runServer(binary, data, folder);
  const order = join(folder, "start.order");
  await rename(join(folder, `${pid}.order`), order);
  await Promise.all([binary, data].map((path) => rm(path, { recursive: true })));
  return order;
}

/** Returns the process that has left a recording in the folder. */
async function runServer(binary: string, data: string, folder: string, settledMs = SETTLED_MS): Promise<number> {
  const server = Bun.spawn([binary, "serve", "--data", data, "--port", "0"], {
    // Its child processes leave recordings too.
    env: { BUN_BYTECODE_ORDER_OUT: join(folder, "%p.order") },
    stdio: ["ignore", "pipe", "inherit"],
    timeout: DEADLINE_MS,
    killSignal: "SIGKILL",
  });
  await fetch(`${await urlOf(server.stdout)}/healthz`);
  await Bun.sleep(settledMs);
  server.kill("SIGTERM");
  if ((await server.exited) !== 0) throw new Error("the server whose start was to be recorded did not end well");
  return server.pid;
}

/** Where the server that writes this log listens. */
async function urlOf(log: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<string> {
  let text = "";
  for await (const chunk of log.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const url = /"event":"listening","url":"([^"]+)"/.exec(text)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error(`the server whose start was to be recorded did not start:\n${text}`);
}
