/** How many threads of inference this machine can feed. */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/** Physical cores: two hyperthreads share one. Never more than the process may use. */
export function physicalCores(): number {
  const allowed = availableParallelism();
  const cores = new Set<string>();
  for (let cpu = 0; ; cpu++) {
    try {
      cores.add(readFileSync(`/sys/devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`, "utf8"));
    } catch {
      break; // there is no such core, or the system does not say
    }
  }
  return cores.size === 0 ? allowed : Math.min(allowed, cores.size);
}

/** One core stays free for the host, which serves traffic while the model computes. */
export const defaultThreads = (): number => Math.max(1, physicalCores() - 1);
