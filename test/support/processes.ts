import { readdirSync, readFileSync } from "node:fs";

/** A process's arguments; none once it has ended, which it may do at any moment. */
export function argumentsOf(pid: number | string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
}

/** The processes for scripts of this host: they name it as their parent. */
export const scriptsOf = (host: number): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => argumentsOf(name).some((word) => word.startsWith("{") && word.includes(`"parent":${host},`)))
    .map(Number);
