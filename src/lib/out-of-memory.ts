import { writeFileSync } from "node:fs";

/**
 * If the machine runs out of memory, Linux ends this process before the host, which is the parent of all and cannot be
 * replaced: the more points of 1,000 it has, the sooner.
 */
export function volunteerForOutOfMemory(points: number): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", String(points));
  } catch {
    // Only a wish: without it, the kernel chooses by size.
  }
}
