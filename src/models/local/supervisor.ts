/**
 * Keeps the model process running: starts it when there is work, ends it when there has been none for a while, and
 * restarts it when it dies. Requests that have shown no text yet are then repeated in the new process; only the log
 * mentions it.
 */
import { messageOf } from "../../lib/message-of.ts";
import { ownCommand } from "../../lib/own-program.ts";
import { ModelError } from "../engine.ts";
import type { HostToModel, ModelToHost, ProcessSettings } from "./protocol.ts";

export interface Log {
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
}

export interface SupervisorOptions {
  /** The command that starts the model process: `modelProcessCommand()`. */
  command: string[];
  settings: ProcessSettings;
  /** The process is ended after this time without work. */
  idleMs: number;
  /**
   * A process that has work but is silent for this long counts as hung and is killed, also during its start. Counted in
   * checks that run on time: while the host itself is blocked or suspended, it does not read the process's messages.
   */
  silentMs: number;
  log: Log;
  /** Whose lines in the log are to say so; the added model's by default. */
  name?: string;
  /** Computes the vectors that the process asks for. */
  embed?(texts: string[], signal: AbortSignal): Promise<Float32Array[]>;
  /** What the process writes to standard error, such as ONNX Runtime's errors; inherited by default. */
  errors?: "inherit" | "ignore";
  /** Called when the process has loaded its model. */
  onLoaded?(): void;
  /** Called when the process starts, and with nothing when it ends. */
  onProcess?(pid: number | undefined): void;
}

export type Reply = Extract<ModelToHost, { id: number }>;

export interface Work {
  request: Extract<HostToModel, { type: "generate" | "embed" | "try" }>;
  /** Of what, for the log: a run or a request. */
  whose: { runId?: string | undefined; requestId?: string | undefined };
  onReply(reply: Reply): void;
  onFailure(error: ModelError): void;
}

export interface Supervisor {
  submit(work: Work): void;
  /** Forgets the work; nothing more is reported about it. */
  cancel(id: number): void;
  stats(): { pid: number | undefined; starts: number; active: number; queued: number };
  /** Ends the process and fails the remaining work. */
  close(): Promise<void>;
}

interface Pending extends Work {
  started: boolean;
  shown: boolean;
  retried: boolean;
}

/** How many checks a silent process survives. */
const CHECKS = 10;
/** A process waits no longer for vectors that it has asked for. */
const VECTORS_MS = 20_000;
/**
 * No variables of the host: `BUN_BE_BUN=1` alone would turn a compiled binary into another program. And ONNX Runtime is not to
 * report to its makers: without this one, it gives the machine a number, keeps events in the home folder and sends them.
 */
const ENVIRONMENT = { ORT_DISABLE_TELEMETRY: "1" };

type ModelProcess = Bun.Subprocess<"ignore", "ignore", "inherit" | "ignore">;

/** This program in the role `model-process`. */
export const modelProcessCommand = (): string[] => ownCommand("model-process");

export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { log: logbook, onProcess = () => {} } = options;
  const model = options.name ?? options.settings.model?.name;
  const log: Log = model === undefined ? logbook : named(logbook, model);
  const checkMs = options.silentMs / CHECKS;
  const pending = new Map<number, Pending>();
  let child: ModelProcess | undefined;
  let starts = 0;
  let startedAt = 0;
  let silentChecks = 0;
  let checkedAt = 0;
  let hung = false;
  let closed = false;
  let idleTimer: Timer | undefined;
  let watchTimer: Timer | undefined;

  function start(): ModelProcess {
    starts++;
    hung = false;
    startedAt = performance.now();
    silentChecks = 0;
    const started = Bun.spawn(options.command, {
      env: ENVIRONMENT,
      stdio: ["ignore", "ignore", options.errors ?? "inherit"],
      serialization: "advanced",
      ipc(message: ModelToHost, from) {
        if (from !== child) return;
        if (message.type === "ask") void answerAsked(message, started);
        else receive(message);
      },
      onExit(ended, code, signal) {
        if (ended === child) recover(code ?? signal);
      },
    });
    started.unref(); // an idle process must not keep the host alive
    started.send({ type: "start", settings: options.settings } satisfies HostToModel);
    log.info({ pid: started.pid }, "model process started");
    onProcess(started.pid);
    return started;
  }

  function send(message: HostToModel): void {
    child ??= start();
    try {
      child.send(message);
    } catch {
      // The channel is closed: the process is dying, and `recover` will retry the pending work.
    }
  }

  async function answerAsked({ asked, texts }: Extract<ModelToHost, { type: "ask" }>, from: ModelProcess) {
    silentChecks = 0;
    const answer = await (options.embed ?? embedNothing)(texts, AbortSignal.timeout(VECTORS_MS)).then(
      (vectors) => ({ vectors }),
      (error: unknown) => ({ vectors: [], reason: String(error) }),
    );
    // Another process would take it for what it has asked itself.
    if (from === child) send({ type: "vectors", asked, ...answer });
  }

  function receive(message: Exclude<ModelToHost, { type: "ask" }>): void {
    silentChecks = 0;
    if (message.type === "ready" || message.type === "working") return;
    if (message.type === "loaded") {
      const { stepper, fellBackBecause } = message;
      options.onLoaded?.();
      log.info({ stepper, sinceStartMs: Math.round(performance.now() - startedAt) }, "local model loaded");
      if (fellBackBecause !== undefined) log.warn({ reason: fellBackBecause }, "the local model runs on its slow path");
      return;
    }
    const work = pending.get(message.id);
    if (work === undefined) return;
    if (message.type === "failed")
      log.warn({ ...work.whose, reason: message.message }, "the local model could not handle a request");
    if (message.type === "started") work.started = true;
    else if (message.type === "text") work.shown = true;
    else forget(message.id);
    work.onReply(message);
  }

  /** The process died while it was needed. */
  function recover(how: unknown): void {
    child = undefined;
    onProcess(undefined);
    clearTimeout(idleTimer);
    log.warn({ how, pending: pending.size }, "model process ended");
    // A request that is retried starts the next process, which does not hang.
    const failure = failureOf(how, hung);
    for (const [id, work] of [...pending]) {
      if (work.shown || work.retried) {
        forget(id);
        work.onFailure(failure);
      } else {
        work.retried = true;
        work.started = false;
        dispatch(work);
      }
    }
  }

  function dispatch(work: Pending): void {
    try {
      send(work.request);
      child?.ref();
    } catch (cause) {
      forget(work.request.id);
      const detail = `the model process could not be started: ${messageOf(cause)}`;
      const words = "The local model could not be started. Ask the host's operator.";
      work.onFailure(new ModelError("unavailable", words, { detail, cause }));
    }
  }

  function forget(id: number): void {
    if (!pending.delete(id) || pending.size > 0) return;
    clearTimeout(watchTimer);
    child?.unref();
    endWhenIdle();
  }

  function endWhenIdle(): void {
    clearTimeout(idleTimer);
    const idle = child;
    if (idle === undefined) return;
    idleTimer = setTimeout(() => {
      child = undefined;
      idle.kill("SIGKILL");
      onProcess(undefined);
      log.info({ pid: idle.pid }, "model process ended: idle");
    }, options.idleMs);
    idleTimer.unref();
  }

  function watch(): void {
    clearTimeout(watchTimer);
    const now = performance.now();
    if (now - checkedAt <= 2 * checkMs) silentChecks++;
    checkedAt = now;
    if (silentChecks >= CHECKS) {
      log.warn({ silentMs: options.silentMs }, "model process is silent, killing it");
      hung = true;
      child?.kill("SIGKILL");
      silentChecks = 0;
    }
    watchTimer = setTimeout(watch, checkMs);
    watchTimer.unref();
  }

  return {
    submit(work) {
      if (closed) return work.onFailure(stopping());
      clearTimeout(idleTimer);
      const first = pending.size === 0;
      const entry = { ...work, started: false, shown: false, retried: false };
      pending.set(work.request.id, entry);
      dispatch(entry);
      if (!first || pending.size === 0) return;
      silentChecks = 0;
      checkedAt = Number.NEGATIVE_INFINITY; // this is the first check
      watch();
    },
    cancel(id) {
      const work = pending.get(id);
      if (work === undefined) return;
      if (child !== undefined && work.request.type === "generate") send({ type: "cancel", id });
      forget(id);
    },
    stats() {
      const active = [...pending.values()].filter((work) => work.started).length;
      return { pid: child?.pid, starts, active, queued: pending.size - active };
    },
    async close() {
      closed = true;
      clearTimeout(idleTimer);
      const last = child;
      child = undefined;
      onProcess(undefined);
      for (const [id, work] of [...pending]) {
        pending.delete(id);
        work.onFailure(stopping());
      }
      clearTimeout(watchTimer);
      last?.kill("SIGKILL"); // it has nothing to lose
      await last?.exited;
    },
  };
}

const embedNothing: NonNullable<SupervisorOptions["embed"]> = async () => {
  throw new Error("this process has no embedding model to ask");
};

const named = (log: Log, model: string): Log => ({
  info: (fields, message) => log.info({ model, ...fields }, message),
  warn: (fields, message) => log.warn({ model, ...fields }, message),
});

/** What a request is told whose process has ended. */
function failureOf(how: unknown, hung: boolean): ModelError {
  if (hung) return new ModelError("silent", "The local model did not answer in time. Send the message again.");
  // Nothing here sends that signal to a process at work. The kernel does, where the machine or the container has no memory left.
  if (how === "SIGKILL") {
    const words = "The local model was ended by the operating system, most likely because memory ran out.";
    return new ModelError(
      "broken",
      `${words} Send the message again; if that does not help, give the host more memory.`,
    );
  }
  return new ModelError("broken", "The local model stopped in the middle of its work. Send the message again.");
}

const stopping = () => new ModelError("unavailable", "The host is stopping. Send the message again in a moment.");
