import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";

/** What the operating system allows this process; null if unknown. */
export interface MachineLimits {
  openFiles: number | null;
  /** How many more threads may be started. */
  threads: number | null;
  /** What the machine, or the container's group, has. */
  memoryBytes: number;
}

/** Files reserved for the database, workspaces, logs and outgoing calls. */
const RESERVED_FILES = 256;
/** Threads reserved for the model process, the garbage collector and file access, without which Bun aborts. */
const RESERVED_THREADS = 32;

/** Read from /proc and /sys on Linux; elsewhere only the memory is known. */
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
    memoryBytes: memoryBytes(),
  };
}

/** How many more threads the control group of the container or systemd unit allows. */
function threadsOfGroup(read: (path: string) => string): number | null {
  const groups = read("/proc/self/cgroup");
  const [, unified] = /^0::(\/.*)$/m.exec(groups) ?? [];
  const [, pids] = /^\d+:pids:(\/.*)$/m.exec(groups) ?? [];
  for (const folder of [
    // In a container the group's own path does not exist: its root is the container's group.
    ...(pids === undefined ? [] : [join("/sys/fs/cgroup/pids", pids), "/sys/fs/cgroup/pids"]),
    ...(unified === undefined ? [] : [join("/sys/fs/cgroup", unified), "/sys/fs/cgroup"]),
  ]) {
    const max = numberOf(read(join(folder, "pids.max")).trim());
    if (max !== null) return max - (numberOf(read(join(folder, "pids.current")).trim()) ?? 0);
  }
  return null;
}

/** How many event streams the host may hold open: the setting, capped by its file descriptors. */
export const capStreams = (wanted: number, { openFiles }: Pick<MachineLimits, "openFiles">): number =>
  openFiles === null ? wanted : Math.max(16, Math.min(wanted, Math.floor((openFiles - RESERVED_FILES) * 0.75)));

const MIB = 1024 * 1024;
/** What the machine must have for each worker, which takes up to 4 MiB: together they take a quarter. */
const MEMORY_FOR_WORKER = 16 * MIB;

/** How many workers may be awake: the setting, capped by the host's threads and memory. */
export const capWorkers = (wanted: number, { threads, memoryBytes }: Omit<MachineLimits, "openFiles">): number =>
  Math.max(
    1,
    Math.min(
      wanted,
      (threads ?? Number.POSITIVE_INFINITY) - RESERVED_THREADS,
      Math.floor(memoryBytes / MEMORY_FOR_WORKER),
    ),
  );

/** Bun's default for concurrent fetches. */
const DEFAULT_MAX_FETCHES = 256;
/**
 * Fetches reserved for calls other than the models': three networks whose nodes hang, and a facilitator (outgoing.ts).
 */
const RESERVED_FETCHES = 136;

/** How many model calls may be in flight, so that other calls always find a connection. */
export const capModelCalls = (fetches: string | undefined): number =>
  Math.max(1, (numberOf(fetches) ?? DEFAULT_MAX_FETCHES) - RESERVED_FETCHES);

/** What loaded models may take: the setting in MiB, or half of what the machine or the container's group has. */
export function modelMemoryBytes(mebibytes: number | null): number {
  if (mebibytes !== null) return mebibytes * MIB;
  return Math.floor(memoryBytes() / 2);
}

/** What the host takes with the embedded model at work, measured in a container: with 300 MiB the kernel ends the model. */
const MEMORY_FOR_EMBEDDED_MODEL = 384 * MIB;

/** Null if the embedded model has the memory that it needs. */
export function lackOfMemory(bytes = memoryBytes()): { hasMiB: number; needsMiB: number } | null {
  if (bytes >= MEMORY_FOR_EMBEDDED_MODEL) return null;
  return { hasMiB: Math.floor(bytes / MIB), needsMiB: MEMORY_FOR_EMBEDDED_MODEL / MIB };
}

/** What the machine or the container's group has. */
function memoryBytes(): number {
  const limit = process.constrainedMemory();
  return Math.min(totalmem(), limit > 0 ? limit : totalmem());
}

const numberOf = (text: string | undefined): number | null =>
  text !== undefined && /^\d+$/.test(text) ? Number(text) : null;

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
