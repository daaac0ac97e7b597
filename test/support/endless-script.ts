import { readFileSync } from "node:fs";

/** A script that never ends, and that says when it runs. */
export const ENDLESS = "console.log('x'.repeat(4_000)); for (;;);";

/** Whether a process of the binary runs `ENDLESS`. One that still starts, or waits for a script, has written much less. */
export function runsEndless(pid: number): boolean {
  try {
    if (!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("sandbox-script")) return false;
    return Number(/^wchar: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]) > 4_000;
  } catch {
    return false;
  }
}

/** Looks now and then: who looks all the time keeps the processor from scripts, which give way to it. */
export async function until<T>(find: () => T | undefined | false): Promise<T> {
  for (;;) {
    const found = find();
    if (found !== undefined && found !== false) return found;
    await Bun.sleep(1);
  }
}
