/** The host's side of one process that runs one script: started, watched, and always killed in the end. */
import { readFileSync } from "node:fs";
import { setPriority } from "node:os";
import { kill as sendSignal } from "node:process";
import {
  type Attempts,
  type Frame,
  type Job,
  LIMITS,
  MIB_BYTES,
  readFrame,
  scriptNiceness,
  type Thrown,
} from "./protocol.ts";

/** How a run ended. `console` is what the script had written by then, whatever happened to it. */
export type Outcome = { console: string; leftOut: number } & (
  | { type: "result"; json: string | null }
  | { type: "thrown"; error: Thrown }
  /** The process was killed, or died. */
  | { type: "killed"; why: Killed }
);

/** `crash` is anything that nobody here did: the process died of its own, or was killed from outside. */
export type Killed = "deadline" | "memory" | "output" | "cancelled" | "crash";

export interface Child {
  pid: number;
  /** Resolves when the process is locked and waits; false if it died instead. */
  ready: Promise<boolean>;
  /** Why it could not lock itself; null if it could, or died without a word. */
  fault(): string | null;
  /** What a process that was told to probe has tried; null if it died instead. */
  probed: Promise<Attempts | null>;
  /** Gives it its only job. Never rejects. */
  run(job: Job, signal: AbortSignal): Promise<Outcome>;
  kill(): void;
  /** Resolves when the process is gone. */
  gone: Promise<unknown>;
}

/** However little of the processor is left for it: its own work is a tenth of a second. */
const START_MS = 60_000;
const EXIT_OF_SIGXCPU = 128 + 24;
const WATCH_MS = 20;
/** A process that follows the rules stays below this: a result in JSON in JSON, and a console. */
const MAX_OUTPUT_BYTES = 8 * MIB_BYTES;

/**
 * `runMs`: its job's deadline. `ownSession`: a process that does not leave the host's process group by itself; what it has
 * started ends with it.
 */
export function startChild(
  command: readonly string[],
  { runMs = LIMITS.runMs, ownSession = false }: { runMs?: number; ownSession?: boolean } = {},
): Child {
  const process = Bun.spawn([...command], {
    // No variables: `BUN_BE_BUN=1` alone would turn a compiled binary into another program.
    env: {},
    cwd: "/",
    stdio: ["pipe", "pipe", "ignore"],
    // An interrupt in the host's terminal is the host's alone to answer.
    detached: ownSession,
  });
  yieldAtOnce(process.pid);
  process.unref(); // a process that waits for a job must not keep the host alive
  const ready = Promise.withResolvers<boolean>();
  const probed = Promise.withResolvers<Attempts | null>();
  const ended = Promise.withResolvers<Extract<Frame, { type: "result" | "thrown" }> | null>();
  const lines: string[] = [];
  let killed: Killed | undefined;
  let fault: string | null = null;

  function kill(why: Killed): void {
    killed ??= why;
    if (ownSession && process.exitCode === null && process.signalCode === null) killGroup(process.pid);
    process.kill("SIGKILL");
  }

  function hear(frame: Frame): void {
    if (frame.type === "ready") ready.resolve(true);
    else if (frame.type === "console") lines.push(frame.text);
    else if (frame.type === "fault") fault = frame.reason;
    else if (frame.type === "probed") probed.resolve(frame.attempts);
    else if (frame.type === "result" || frame.type === "thrown") ended.resolve(frame);
  }

  const starting = setTimeout(() => kill("deadline"), START_MS);
  starting.unref();
  void Promise.race([ready.promise, probed.promise]).then(() => clearTimeout(starting));
  const read = readFrames(process.stdout, hear).then(
    (within) => within || kill("output"),
    () => kill("crash"), // a pipe that cannot be read is as good as none
  );
  const exited = process.exited.then(() => {
    if (ownSession) killGroup(process.pid);
  });
  const gone = Promise.all([read, exited]).then(() => {
    ready.resolve(false);
    probed.resolve(null);
    ended.resolve(null);
  });

  return {
    pid: process.pid,
    ready: ready.promise,
    probed: probed.promise,
    gone,
    fault: () => fault,
    kill: () => kill("cancelled"),
    async run(job, signal) {
      const deadline = setTimeout(() => kill("deadline"), runMs);
      const cancel = () => kill("cancelled");
      signal.addEventListener("abort", cancel, { once: true });
      if (signal.aborted) cancel();
      const stopWatching = watchMemory(process.pid, () => kill("memory"));
      try {
        try {
          process.stdin.write(JSON.stringify(job));
          await process.stdin.end();
        } catch {
          // The process is gone already; how it ended says why.
        }
        const frame = await ended.promise;
        return outcomeOf(frame);
      } finally {
        stopWatching();
        clearTimeout(deadline);
        signal.removeEventListener("abort", cancel);
        kill("cancelled"); // it has answered, and is never used again
      }
    },
  };

  function outcomeOf(frame: Extract<Frame, { type: "result" | "thrown" }> | null): Outcome {
    const console = lines.join("\n");
    if (frame === null) {
      // The kernel ends what has used up its processor time. Bubblewrap tells of it as a shell does.
      const late = process.signalCode === "SIGXCPU" || process.exitCode === EXIT_OF_SIGXCPU;
      return { type: "killed", why: killed ?? (late ? "deadline" : "crash"), console, leftOut: 0 };
    }
    return { ...frame, console };
  }
}

/** Reads lines to the end; false if there were too many bytes. What is no frame is passed over. */
async function readFrames(stream: ReadableStream<Uint8Array>, hear: (frame: Frame) => void): Promise<boolean> {
  const decoder = new TextDecoder();
  let rest = "";
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > MAX_OUTPUT_BYTES) return false;
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const frame = readFrame(line);
      if (frame !== null) hear(frame);
    }
  }
  return true;
}

/** Not only once it can do so itself: until then its start would take a core from the host for tens of milliseconds. */
function yieldAtOnce(pid: number): void {
  try {
    setPriority(pid, scriptNiceness());
  } catch {
    // It has ended already.
  }
}

/**
 * Bubblewrap's own child waits for it at first, and does so for ever, with the pipes open, if bubblewrap alone is killed or
 * gives up by then. Later it dies with its parent, whatever its group.
 */
function killGroup(group: number): void {
  try {
    sendSignal(-group, "SIGKILL");
  } catch {
    // All of it is gone already.
  }
}

/** The process itself, or the one that bubblewrap runs in its place. */
function innermost(pid: number): number {
  const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").split(" ")[0]);
  return child > 0 ? innermost(child) : pid;
}

/** Looks at a process's anonymous memory until told to stop. Only on Linux, where the processes are. */
function watchMemory(pid: number, onTooMuch: () => void): () => void {
  const timer = setInterval(() => {
    try {
      // Found anew each time: bubblewrap starts its process only after it was started itself.
      const status = readFileSync(`/proc/${innermost(pid)}/status`, "latin1");
      if (Number(/RssAnon:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024 > LIMITS.processBytes) onTooMuch();
    } catch {
      // It has just ended.
    }
  }, WATCH_MS);
  return () => clearInterval(timer);
}
