import { readFileSync } from "node:fs";
import { join } from "node:path";

/** What the operating system allows this process; null where it does not say. */
export interface MachineLimits {
  openFiles: number | null;
  /** Threads that may still be started. */
  threads: number | null;
}

/** Files that the database, workspaces, logs and outgoing calls need beside clients' connections. */
const FILES_FOR_ITSELF = 256;
/** Threads of the model process, the garbage collector and file access, which come and go. Without them Bun aborts. */
const THREADS_FOR_ITSELF = 32;

/** Linux tells in /proc and /sys; elsewhere nothing is known. */
export function readMachineLimits(read: (path: string) => string = readText): MachineLimits {
  const limits = read("/proc/self/limits");
  const limitOf = (name: string) => numberOf(new RegExp(`^${name} +(\\d+)`, "m").exec(limits)?.[1]);
  const processes = limitOf("Max processes");
  const own = numberOf(/^Threads:\s+(\d+)/m.exec(read("/proc/self/status"))?.[1]) ?? 0;
  const ofGroup = threadsOfGroup(read);
  const left = [processes === null ? null : processes - own, ofGroup].filter((count) => count !== null);
  return {
    openFiles: limitOf("Max open files"),
    threads: left.length === 0 ? null : Math.max(0, Math.min(...left)),
  };
}

/** Threads that the control group of a container or a unit still allows. */
function threadsOfGroup(read: (path: string) => string): number | null {
  const groups = read("/proc/self/cgroup");
  const [, unified] = /^0::(\/.*)$/m.exec(groups) ?? [];
  const [, pids] = /^\d+:pids:(\/.*)$/m.exec(groups) ?? [];
  for (const folder of [
    // In a container the group's own path does not exist, and its root is the container's.
    ...(pids === undefined ? [] : [join("/sys/fs/cgroup/pids", pids), "/sys/fs/cgroup/pids"]),
    ...(unified === undefined ? [] : [join("/sys/fs/cgroup", unified), "/sys/fs/cgroup"]),
  ]) {
    const max = numberOf(read(join(folder, "pids.max")).trim());
    if (max !== null) return max - (numberOf(read(join(folder, "pids.current")).trim()) ?? 0);
  }
  return null;
}

/** How many event streams the host holds open: what was wished, or what its files allow. */
export const streamsThatFit = (wished: number, { openFiles }: MachineLimits): number =>
  openFiles === null ? wished : Math.max(16, Math.min(wished, Math.floor((openFiles - FILES_FOR_ITSELF) * 0.75)));

/** How many workers may be awake: what was wished, or what its threads allow. */
export const workersThatFit = (wished: number, { threads }: MachineLimits): number =>
  threads === null ? wished : Math.max(1, Math.min(wished, threads - THREADS_FOR_ITSELF));

/** What Bun's fetch asks for at once where its environment does not say otherwise. */
const FETCHES_OF_BUN = 256;
/** Outgoing calls that are no model's, at most: nodes of three networks that hang, and a facilitator (outgoing.ts). */
const FETCHES_FOR_OTHERS = 136;

/** How many model calls may be on their way, so that another kind of call always finds a connection. */
export const modelCallsThatFit = (fetches: string | undefined): number =>
  Math.max(1, (numberOf(fetches) ?? FETCHES_OF_BUN) - FETCHES_FOR_OTHERS);

const numberOf = (text: string | undefined): number | null =>
  text !== undefined && /^\d+$/.test(text) ? Number(text) : null;

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
