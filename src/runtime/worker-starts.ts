import { createTokenBuckets } from "../limits/token-buckets.ts";

/** Who may start a worker, and when. */
export interface WorkerStarts {
  /** Whether the account may start one now. If not, `onRoom` is called when it may. */
  mayStart(accountId: string): boolean;
  /** Notes that one starts. What it returns is to be called once it is at work, or has ended. */
  start(accountId: string): () => void;
  /** Notes that the account is at work: others leave it its share of the processor. */
  works(accountId: string): void;
}

/** An account is at work for so long after a run of it has begun. */
const AT_WORK_MS = 1_000;
/** What an account's starts may take while others are at work: a tenth of the time, after so many seconds at once. */
const SHARE = { perSecond: 0.1, burst: 0.1 };
/** A start that takes longer does not hold up others. */
const MAX_START_MS = 500;

/**
 * Each start takes a core for some milliseconds. So one worker starts at a time, and accounts take turns; while others are
 * at work, an account that wakes one instance after the other pauses in between. `onRoom` may be called without need.
 */
export function createWorkerStarts(nowMs: () => number, onRoom: () => void): WorkerStarts {
  const spent = createTokenBuckets(() => nowMs() / 1_000);
  let starting: { beganMs: number } | null = null;
  let timer: Timer | undefined;
  let callsAtMs = Number.POSITIVE_INFINITY;
  /** When the account that has worked last did so, and when any other did. */
  let last = { accountId: "", atMs: Number.NEGATIVE_INFINITY };
  let othersAtMs = Number.NEGATIVE_INFINITY;

  const othersWork = (accountId: string) =>
    nowMs() - (accountId === last.accountId ? othersAtMs : last.atMs) < AT_WORK_MS;

  /** In milliseconds. */
  function waitOf(accountId: string): number {
    const held = starting === null ? 0 : Math.max(0, starting.beganMs + MAX_START_MS - nowMs());
    return Math.max(held, othersWork(accountId) ? 1_000 * spent.wait(accountId, SHARE, 0) : 0);
  }

  function callIn(ms: number): void {
    if (nowMs() + ms >= callsAtMs) return;
    clearTimeout(timer);
    callsAtMs = nowMs() + ms;
    timer = setTimeout(() => {
      callsAtMs = Number.POSITIVE_INFINITY;
      onRoom();
    }, ms);
    timer.unref();
  }

  return {
    mayStart(accountId) {
      const wait = waitOf(accountId);
      if (wait > 0) callIn(wait);
      return wait === 0;
    },
    start(accountId) {
      const own = { beganMs: nowMs() };
      let isOver = false;
      starting = own;
      return () => {
        if (isOver) return;
        isOver = true;
        if (starting === own) starting = null;
        if (othersWork(accountId)) spent.charge(accountId, SHARE, (nowMs() - own.beganMs) / 1_000);
        onRoom();
      };
    },
    works(accountId) {
      if (accountId !== last.accountId) othersAtMs = last.atMs;
      last = { accountId, atMs: nowMs() };
    },
  };
}
