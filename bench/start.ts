import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildBinary, startBinary } from "../test/support/binary.ts";
import { median, type Row, residentMiB } from "./figure.ts";

const ROUNDS = 7;
/** By then a server that nobody asks for anything does nothing more. */
const SETTLED_MS = 5_000;

/** The time from the start of the process to the first 200, and its memory when idle. */
export async function benchStart(): Promise<Row[]> {
  const binary = await buildBinary();
  const dataDir = mkdtempSync(join(tmpdir(), "roost-bench-"));
  const starts: number[] = [];
  const bare: number[] = [];
  const memory: number[] = [];
  try {
    for (let round = 0; round < ROUNDS; round++) {
      bare.push(await timeOf([binary, "--version"]));
      const port = 20_000 + Math.floor(Math.random() * 20_000);
      const begun = performance.now();
      const starting = startBinary({ dataDir, binary, args: ["--port", String(port)] });
      // If the port was taken, the server has ended: fail, instead of asking for ever.
      const ended = starting.then(() => new Promise<never>(() => {}));
      await Promise.race([firstOk(`http://127.0.0.1:${port}/healthz`), ended]);
      starts.push(performance.now() - begun);
      const server = await starting;
      await Bun.sleep(SETTLED_MS);
      memory.push(residentMiB(server.process.pid));
      await server.stop();
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
  const start = median(starts.slice(1));
  const idle = median(memory);
  return [
    {
      figure: "start to first 200",
      value: start,
      unit: "ms",
      baseline: { what: "roost --version", value: median(bare.slice(1)) },
      goal: "≤ 60 ms",
      met: start <= 60,
    },
    { figure: "memory at idle", value: idle, unit: "MiB", goal: "≤ 70 MiB", met: idle <= 70 },
  ];
}

async function timeOf(command: string[]): Promise<number> {
  const begun = performance.now();
  await Bun.spawn(command, { stdio: ["ignore", "ignore", "ignore"] }).exited;
  return performance.now() - begun;
}

async function firstOk(url: string): Promise<void> {
  for (;;) {
    try {
      if ((await fetch(url)).ok) return;
    } catch {
      await Bun.sleep(1);
    }
  }
}
