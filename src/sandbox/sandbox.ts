/**
 * Runs scripts that nobody has to trust. Each gets a process of its own, which is locked before it sees the script and is
 * killed after it. One or two locked processes stand ready while scripts come, so that none waits for a start.
 */

import { availableParallelism } from "node:os";
import { createFairQueue, type FairQueue } from "../lib/fair-queue.ts";
import { messageOf } from "../lib/message-of.ts";
import { createSlots } from "../limits/slots.ts";
import type { Child, Outcome } from "./child.ts";
import { type Level, type Probe, probeLevel, startLocked } from "./probe.ts";
import { type Job, LIMITS } from "./protocol.ts";

/** A script that was not run at all: scripts are off, too many wait, it is too large. The message is for a model. */
export class NotRun extends Error {
  override readonly name = "NotRun";
}

export interface Sandbox {
  /** Finds out, once, what this machine can do. Scripts wait for it. */
  probe(): Promise<Probe>;
  /** Null until that is known. */
  level(): Level | null;
  /**
   * Runs a script as soon as its instance has a place. Rejects with `NotRun`, or with the signal's reason while it waits; what
   * happens to a script that has started is its outcome.
   */
  run(job: Job, by: { instanceId: string; runId?: string; signal: AbortSignal }): Promise<Outcome>;
  figures(): { running: number; waiting: number; standby: number; ended: ReadonlyMap<string, number> };
  /** Kills every process. */
  close(): Promise<void>;
}

export interface SandboxOptions {
  log: { warn(fields: Record<string, unknown>, message: string): void };
  /** Whose instance it is: accounts take turns, and in the turns of one, its instances. */
  accountOf(instanceId: string): string;
  /** Scripts at once, of all accounts. */
  places?: number;
  /** How long a script waits for a place. */
  waitMs?: number;
  /** Processes that stand ready while scripts come; they end after `idleMs` without any. */
  standby?: number;
  idleMs?: number;
  probe?: (() => Promise<Probe>) | undefined;
  start?: (level: Exclude<Level, "none">) => Child;
}

/** One script a core, within reason: each may take all of one, and 192 MiB. */
const PLACES = Math.min(8, Math.max(2, availableParallelism()));
const WAIT_MS = 20_000;
const IDLE_MS = 60_000;
const STANDBY = 2;
const MAX_WAITING = 512;
const MAX_WAITING_OF_ONE = 32;
/** A process that dies before its job came is replaced, so many times. */
const STARTS = 3;

/** How long a run may take in all: its turn, a start and the script. */
export const LONGEST_RUN_MS = WAIT_MS + LIMITS.runMs + 5_000;

interface Waiter {
  /** False once it has its turn, or has given up. */
  waits: boolean;
  enter(): void;
}

export function createSandbox(options: SandboxOptions): Sandbox {
  const { log, waitMs = WAIT_MS, idleMs = IDLE_MS, probe = probeLevel, start = startLocked } = options;
  const most = options.standby ?? STANDBY;
  const slots = createSlots({ total: options.places ?? PLACES });
  /** An entry for each script that waits; which one has the account's turn is found in its line. */
  const turns = createFairQueue<Waiter>();
  const lines = new Map<string, FairQueue<Waiter>>();
  const alive = new Set<Child>();
  const standby = new Set<Child>();
  const ended = new Map<string, number>();
  let probing: Promise<Probe> | undefined;
  let level: Level | null = null;
  let waiting = 0;
  let idleTimer: Timer | undefined;
  let closed = false;

  function probeOnce(): Promise<Probe> {
    probing ??= probe()
      .catch((error): Probe => ({ level: "none", detail: messageOf(error) }))
      .then((found) => {
        level = found.level;
        if (level === "none") log.warn({ reason: found.detail }, "scripts are off: nothing here can lock them in");
        return found;
      });
    return probing;
  }

  /** Resolves when the account has a place for this instance; the caller gives it back. */
  function enter(accountId: string, instanceId: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (turns.length(accountId) === 0 && slots.acquire(accountId) === "taken") return Promise.resolve();
    const line = lines.get(accountId) ?? createFairQueue<Waiter>();
    if (waiting >= MAX_WAITING || line.length(instanceId) >= MAX_WAITING_OF_ONE) {
      throw new NotRun("too many scripts wait already; run this one again when others have ended");
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = (settle: () => void) => () => {
      if (!waiter.waits) return;
      waiter.waits = false;
      waiting--;
      line.remove(instanceId, waiter);
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      settle();
    };
    const late = `the script did not get its turn within ${waitMs / 1000} seconds, because others run; run it again later`;
    const timer = setTimeout(
      leave(() => reject(new NotRun(late))),
      waitMs,
    );
    const onAbort = leave(() => reject(signal.reason));
    const waiter: Waiter = { waits: true, enter: leave(resolve) };
    signal.addEventListener("abort", onAbort, { once: true });
    waiting++;
    lines.set(accountId, line);
    line.add(instanceId, waiter);
    turns.add(accountId, waiter);
    return promise;
  }

  function leave(accountId: string): void {
    slots.release(accountId);
    turns.serve((_, next) => {
      if (slots.acquire(next) !== "taken") return "skip owner";
      const waiter = nextOf(next);
      if (waiter === undefined) slots.release(next);
      else waiter.enter();
      return "taken";
    });
  }

  /** The first script of the instance whose turn it is; undefined if all have given up. */
  function nextOf(accountId: string): Waiter | undefined {
    const line = lines.get(accountId);
    let found: Waiter | undefined;
    line?.serve((waiter) => {
      if (found !== undefined) return "skip owner";
      found = waiter;
      return "taken";
    });
    if (line?.isEmpty()) lines.delete(accountId);
    return found;
  }

  /** Throws if the system has no room for another process, and once the sandbox is closed. */
  function startOne(inside: Exclude<Level, "none">): Child {
    if (closed) throw new NotRun("the host is stopping; run the script again in a moment");
    const child = start(inside);
    alive.add(child);
    void child.gone.then(() => {
      alive.delete(child);
      standby.delete(child);
    });
    return child;
  }

  /** A locked process that waits for its job; `stoodReady` if it was not started for it. Throws the signal's reason. */
  async function take(
    inside: Exclude<Level, "none">,
    whose: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<{ child: Child; stoodReady: boolean }> {
    for (let tries = 0; tries < STARTS; tries++) {
      signal.throwIfAborted();
      const [ready] = standby;
      if (ready) standby.delete(ready);
      let child: Child;
      try {
        child = ready ?? startOne(inside);
      } catch (error) {
        if (error instanceof NotRun) throw error;
        log.warn({ err: error, ...whose }, "a process for a script could not be started");
        continue;
      }
      signal.addEventListener("abort", child.kill, { once: true });
      const isReady = await child.ready;
      signal.removeEventListener("abort", child.kill);
      if (isReady) return { child, stoodReady: ready !== undefined };
      if (!signal.aborted) log.warn({ reason: child.fault(), ...whose }, "a process for a script did not get ready");
    }
    signal.throwIfAborted();
    throw new NotRun("the process for the script could not be started; run it again");
  }

  function refill(inside: Exclude<Level, "none">): void {
    clearTimeout(idleTimer);
    if (closed) return;
    try {
      while (standby.size < most) standby.add(startOne(inside));
    } catch (error) {
      log.warn({ err: error }, "a process for the next script could not be started");
    }
    idleTimer = setTimeout(() => {
      for (const child of standby) child.kill();
      standby.clear();
    }, idleMs);
    idleTimer.unref();
  }

  return {
    probe: probeOnce,
    level: () => level,
    async run(job, { instanceId, runId, signal }) {
      requireSize(job);
      const { level: inside } = await probeOnce();
      if (inside === "none") throw new NotRun("this host runs no scripts: nothing on it could lock them in");
      const accountId = options.accountOf(instanceId);
      await enter(accountId, instanceId, signal);
      const whose = { accountId, instanceId, runId };
      try {
        let { child, stoodReady } = await take(inside, whose, signal);
        let outcome = await child.run(job, signal);
        while (stoodReady && outcome.type === "killed" && outcome.why === "crash") {
          // It may have died while it stood there, unnoticed. A script changes nothing, so it may run twice.
          ({ child, stoodReady } = await take(inside, whose, signal));
          outcome = await child.run(job, signal);
        }
        const how = outcome.type === "killed" ? outcome.why : outcome.type;
        ended.set(how, (ended.get(how) ?? 0) + 1);
        if (how === "crash") log.warn(whose, "the process of a script died");
        return outcome;
      } finally {
        leave(accountId);
        refill(inside);
      }
    },
    figures: () => ({ running: slots.inUse(), waiting, standby: standby.size, ended }),
    async close() {
      closed = true;
      clearTimeout(idleTimer);
      for (const child of alive) child.kill();
      await Promise.all([...alive].map((child) => child.gone));
    },
  };
}

function requireSize({ source, input }: Job): void {
  const { sourceBytes, inputBytes } = LIMITS;
  const [code, data] = [Buffer.byteLength(source), Buffer.byteLength(input ?? "")];
  if (code > sourceBytes)
    throw new NotRun(`the code has ${code} bytes, and may have ${sourceBytes}; give data as input`);
  if (data > inputBytes) throw new NotRun(`the input has ${data} bytes of JSON, and may have ${inputBytes}; give less`);
}
