import { createFairQueue } from "../lib/fair-queue.ts";
import { createTokenBuckets, type Rate } from "./token-buckets.ts";

/**
 * One thread serves everybody. The requests of one account may take a share of each turn of its event loop; the rest
 * wait for later turns, and other accounts' requests are served before them.
 */
export interface FairTurns {
  /** Null if the owner may proceed at once; otherwise resolves in a later turn, in the order of the calls. */
  enter(owner: string): Promise<void> | null;
  /** Runs `work`, counting its time, and `besidesMs` that it costs later or elsewhere against the owner's share. */
  spend<T>(owner: string, work: () => T, besidesMs?: number): T;
  /** Counts the time of work that was done without `spend`. */
  spent(owner: string, tookMs: number, besidesMs?: number): void;
}

export interface FairTurnOptions {
  /**
   * Time of one owner in one turn, in milliseconds. Work that has begun is finished; the time by which it was longer is
   * taken from the owner's next turns.
   */
  maxMs: number;
  /**
   * The same while nobody else does anything, or for an owner that has hardly used its share: fewer turns of the event loop
   * for the same work. By default `maxMs`.
   */
  aloneMs?: number;
  /**
   * How much of the time an owner may spend while others spend some too, from 0 to 1: what it does costs more than the
   * time that is counted here, on other threads and processors. All of it while nobody else does anything.
   */
  share?: number;
  /** Called in a later turn of the event loop, before those that have waited for it go on. */
  beforeLater?(): void;
  now?(): number;
  nextTurn?(then: () => void): void;
  wait?(ms: number, then: () => void): void;
}

/** However long one work took, its owner has its share again after so many turns. */
const MOST_TURNS_OWED = 32;

/** Others do something if they have within this time. */
const ACTIVE_MS = 100;
/** Time that an owner may spend at once beyond its share. */
const SAVED_MS = 20;

export function createFairTurns({
  maxMs,
  aloneMs = maxMs,
  share = 1,
  beforeLater = () => {},
  now = () => performance.now(),
  nextTurn = setImmediate,
  wait = (ms, then) => void setTimeout(then, ms),
}: FairTurnOptions): FairTurns {
  /** Time of each owner in this turn, and what it owes of earlier ones. */
  const spentMs = new Map<string, number>();
  /** The time of each owner's latest work, for owners that have spent time or wait. */
  const latestMs = new Map<string, number>();
  const queue = createFairQueue<() => void>();
  const shares = createTokenBuckets(() => now() / 1000);
  const rate: Rate = { perSecond: 1000 * share, burst: SAVED_MS };
  /** Who spent last, and when somebody else last did. */
  let latest = { owner: "", atMs: Number.NEGATIVE_INFINITY };
  let othersAtMs = Number.NEGATIVE_INFINITY;
  let counting = false;
  let waiting = false;

  /** Milliseconds until the owner has time left of its share. */
  function pauseOf(owner: string): number {
    if (share === 1 || !hasCompany(owner)) return 0;
    return 1000 * shares.wait(owner, rate);
  }

  /** Whether others do something. */
  const hasCompany = (owner: string) => now() - (latest.owner === owner ? othersAtMs : latest.atMs) < ACTIVE_MS;

  /** How much of one turn the owner may spend now. */
  const turnMs = (owner: string) => (aloneMs !== maxMs && (!hasCompany(owner) || isQuiet(owner)) ? aloneMs : maxMs);

  /** Whether the owner does so little that others' turns need no protection from it. */
  const isQuiet = (owner: string) => share < 1 && shares.wait(owner, rate, SAVED_MS / 2) === 0;

  function charge(owner: string, ms: number): void {
    if (latest.owner !== owner) othersAtMs = latest.atMs;
    latest = { owner, atMs: now() };
    if (share < 1 && hasCompany(owner)) shares.charge(owner, rate, ms);
  }

  function spent(owner: string, tookMs: number, besidesMs = 0): void {
    spentMs.set(owner, (spentMs.get(owner) ?? 0) + tookMs);
    latestMs.set(owner, tookMs);
    charge(owner, tookMs + besidesMs);
    count();
  }

  function count(): void {
    if (counting) return;
    counting = true;
    nextTurn(begin);
  }

  function begin(): void {
    counting = false;
    for (const [owner, ms] of spentMs) {
      const most = turnMs(owner);
      if (ms > most) spentMs.set(owner, Math.min(ms, MOST_TURNS_OWED * maxMs) - most);
      else spentMs.delete(owner);
    }
    for (const owner of latestMs.keys()) if (queue.length(owner) === 0) latestMs.delete(owner);
    const pauseMs = serve();
    if (spentMs.size > 0 || (!queue.isEmpty() && pauseMs === 0)) count();
    else if (pauseMs > 0 && !waiting) {
      waiting = true;
      wait(Math.min(pauseMs, ACTIVE_MS), () => {
        waiting = false;
        count();
      });
    }
  }

  /**
   * Starts as many of each owner as should fit into its turn, judged by its latest work. Returns after how long to look
   * again, if all that wait have used up their share.
   */
  function serve(): number {
    const left = new Map<string, number>();
    let pauseMs = Number.POSITIVE_INFINITY;
    queue.serve((go, owner) => {
      const ownPauseMs = pauseOf(owner);
      pauseMs = Math.min(pauseMs, ownPauseMs);
      if (ownPauseMs > 0) return "skip owner";
      const leftMs = left.get(owner) ?? turnMs(owner) - (spentMs.get(owner) ?? 0);
      if (leftMs <= 0) return "skip owner";
      left.set(owner, leftMs - (latestMs.get(owner) ?? maxMs));
      beforeLater();
      go();
      return "taken";
    });
    return queue.isEmpty() ? 0 : pauseMs;
  }

  return {
    enter(owner) {
      if (queue.length(owner) === 0 && (spentMs.get(owner) ?? 0) < turnMs(owner) && pauseOf(owner) === 0) return null;
      const { promise, resolve } = Promise.withResolvers<void>();
      queue.add(owner, resolve);
      count();
      return promise;
    },
    spend(owner, work, besidesMs = 0) {
      const began = now();
      try {
        return work();
      } finally {
        spent(owner, now() - began, besidesMs);
      }
    },
    spent,
  };
}
