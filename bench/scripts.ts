import { startLocked } from "../src/sandbox/probe.ts";
import { createSandbox } from "../src/sandbox/sandbox.ts";
import { buildBinary } from "../test/support/binary.ts";
import { median, type Row, residentMiB } from "./figure.ts";

const ROUNDS = 31;
const JOB = { kind: "script", source: "6 * 7", input: null } as const;
const BY = { instanceId: "bench", signal: new AbortController().signal };

/**
 * From a call to a script's result, with the binary's own processes: started for it, and locked beforehand. The baseline is
 * the same program started for nothing, without any lock.
 */
export async function benchScripts(): Promise<Row[]> {
  const program = { command: [await buildBinary()], readable: [] };
  const base = { log: { warn() {} }, accountOf: (instanceId: string) => instanceId };
  const start = () => startLocked("landlock", null, program);
  const probe = async () => ({ level: "landlock" as const, detail: "" });
  const cold = createSandbox({ ...base, probe, start, standby: 0 });
  const bare: number[] = [];
  const started: number[] = [];
  const locked: number[] = [];
  const memory: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    bare.push(
      await timeOf(
        () => Bun.spawn([...program.command, "--version"], { stdio: ["ignore", "ignore", "ignore"] }).exited,
      ),
    );
    started.push(await timeOf(() => cold.run(JOB, BY)));
    const child = start();
    await child.ready;
    memory.push(residentMiB(child.pid));
    const warm = createSandbox({ ...base, probe, start: () => child, standby: 0 });
    locked.push(await timeOf(() => warm.run(JOB, BY)));
    await child.gone;
  }
  await cold.close();
  const baseline = { what: "roost --version", value: median(bare) };
  const warm = median(locked);
  return [
    { figure: "script in a new process", value: median(started), unit: "ms", baseline },
    {
      figure: "script in a process that stands ready",
      value: warm,
      unit: "ms",
      baseline,
      goal: "≤ 10 ms",
      met: warm <= 10,
    },
    { figure: "resident memory of a process that stands ready", value: median(memory), unit: "MiB" },
  ];
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}
