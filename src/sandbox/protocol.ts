/** What passes between the host and a process that runs one script: lines of JSON, one job there, frames back. */
import { getPriority } from "node:os";

const KIB = 1024;
const MIB = 1024 * KIB;

/** What one script may use (docs/contract/runtime.md, Scripts). */
export const LIMITS = {
  /** Processor time of the process, of which its start takes a twentieth of a second. */
  cpuSeconds: 10,
  /** From the job's arrival to its result, however little of the processor is left for it. */
  runMs: 60_000,
  /** The memory of the script: its values, its code, its stack. */
  scriptBytes: 128 * MIB,
  /** All anonymous memory of the process: the script's, and what the process needs itself. */
  processBytes: 192 * MIB,
  sourceBytes: 256 * KIB,
  inputBytes: 2 * MIB,
  /** Of the result's JSON, in characters. */
  resultChars: MIB,
  /** Of everything that the script writes to its console; more is left out. */
  consoleChars: 64 * KIB,
} as const;

/** `input` is JSON, or null for none. */
export interface Job {
  /**
   * A `script` is statements: its result is what it returns, or else the value of its last statement. A `module` exports
   * the function that gets the input as its default, and returns the result.
   */
  kind: "script" | "module";
  source: string;
  input: string | null;
}

/** What the script threw, as text. Where it has a stack, each place in it is `script.js:LINE:COLUMN`. */
export interface Thrown {
  name: string;
  message: string;
  stack: string;
}

export type Frame =
  /** Locked, and waiting for its job. */
  | { type: "ready" }
  | { type: "console"; text: string }
  /** `json` is null if the script has no result, or one that JSON cannot express, such as a function. */
  | { type: "result"; json: string | null; leftOut: number }
  | { type: "thrown"; error: Thrown; leftOut: number }
  | { type: "probed"; attempts: Attempts }
  /** It could not lock itself, and ends. */
  | { type: "fault"; reason: string };

/** A line as a frame; null for anything else: a process that was taken over may write what it likes. */
export function readFrame(line: string): Frame | null {
  let frame: Partial<Record<string, unknown>> | null;
  try {
    frame = JSON.parse(line);
  } catch {
    return null;
  }
  if (typeof frame !== "object" || frame === null) return null;
  const leftOut = typeof frame.leftOut === "number" ? frame.leftOut : 0;
  switch (frame.type) {
    case "ready":
      return { type: "ready" };
    case "fault":
      return { type: "fault", reason: textOf(frame.reason) };
    case "console":
      return { type: "console", text: textOf(frame.text) };
    case "result":
      return { type: "result", json: typeof frame.json === "string" ? frame.json : null, leftOut };
    case "thrown": {
      const { name, message, stack } = (frame.error ?? {}) as Partial<Record<keyof Thrown, unknown>>;
      return { type: "thrown", error: { name: textOf(name), message: textOf(message), stack: textOf(stack) }, leftOut };
    }
    case "probed": {
      const attempts = readAttempts(frame.attempts);
      return attempts && { type: "probed", attempts };
    }
    default:
      return null;
  }
}

const CALLS = ["read", "readParent", "write", "execute", "connect", "signal", "fork"] as const;

function readAttempts(value: unknown): Attempts | null {
  const { landlockAbi, outer, filtered } = (value ?? {}) as Partial<Attempts>;
  const isWhole = (tries: Tries | undefined) =>
    CALLS.every((name) => typeof tries?.[name] === "number" || tries?.[name] === null);
  if (typeof landlockAbi !== "number" || !outer || !filtered || !isWhole(outer) || !isWhole(filtered)) return null;
  return { landlockAbi, outer, filtered };
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** The name that errors give a script's source. */
export const SOURCE_NAME = "script.js";

export const ERRNO = { EPERM: 1, ENOENT: 2, EACCES: 13, EINVAL: 22, EROFS: 30 } as const;

/**
 * What the kernel answered to one forbidden call: 0 or more if it went through, else the negated errno. Null if it was not
 * tried, because nothing would stop it yet.
 */
export interface Tries {
  read: number;
  readParent: number;
  write: number;
  execute: number;
  connect: number | null;
  signal: number;
  fork: number | null;
}

/** What a process tried under each layer, added one by one. */
export interface Attempts {
  landlockAbi: number;
  /** With the files and sockets that Landlock, or bubblewrap, leaves. */
  outer: Tries;
  /** With the filter of system calls as well. */
  filtered: Tries;
}

/** How the host starts a process; passed as an argument, so nothing in it is secret. */
export interface Start {
  /** Of the host. Null where it has another number inside. */
  parent: number | null;
  /** False where bubblewrap takes its place. */
  landlock: boolean;
  /** Its priority, far below everything else that the host does. */
  niceness: number;
  /** The command that starts this program again. */
  command: string[];
  /** Besides the executable and its libraries, what the program is loaded from. */
  readable: string[];
  /** Its limit of processor time. */
  cpuSeconds: number;
  /** To try what is forbidden, instead of waiting for a job: the port of a listener on 127.0.0.1. */
  probe: number | null;
}

export const scriptNiceness = (): number => Math.min(LOWEST_PRIORITY, getPriority() + NICENESS);

const NICENESS = 10;
const LOWEST_PRIORITY = 19;

export const MIB_BYTES = MIB;
