import { readdirSync, readFileSync } from "node:fs";
import { hasCode } from "../../src/lib/system-error.ts";

/** The threads of a process (Linux). Some may end by themselves at any time. */
export const threadsOf = (pid: number): number[] => readdirSync(`/proc/${pid}/task`).map(Number);

/** What each thread may no longer do, as `<NoNewPrivs> <Seccomp> <CapEff> <CapPrm>`: a locked one is `LOCKED`. */
export function locksOf(pid: number): string[] {
  return threadsOf(pid).flatMap((thread) => {
    try {
      const status = readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8");
      const value = (name: string) => new RegExp(`^${name}:\\s+(\\w+)`, "m").exec(status)?.[1];
      return [["NoNewPrivs", "Seccomp", "CapEff", "CapPrm"].map(value).join(" ")];
    } catch (error) {
      // It has ended since the list was read.
      if (hasCode(error, "ENOENT", "ESRCH")) return [];
      throw error;
    }
  });
}

export const LOCKED = "1 2 0000000000000000 0000000000000000";
