import { createFairQueue } from "./fair-queue.ts";

/**
 * One thread serves everybody. The requests of one account may take a share of each turn of its event loop; the rest
 * wait for later turns, and other accounts' requests are served before them.
 */
export interface FairTurns {
  /** Null if the owner may proceed at once; otherwise resolves in a later turn, in the order of the calls. */
  enter(owner: string): Promise<void> | null;
  /** Runs `work`, counting its time. */
  spend<T>(owner: string, work: () => T): T;
}

export interface FairTurnOptions {
  /**
   * Time of one owner in one turn, in milliseconds. Work that has begun is finished; the time by which it was longer is
   * taken from the owner's next turns.
   */
  maxMs: number;
  now?(): number;
  nextTurn?(then: () => void): void;
}

/** However long one work took, its owner has its share again after so many turns. */
const MOST_TURNS_OWED = 32;

export function createFairTurns({
  maxMs,
  now = () => performance.now(),
  nextTurn = setImmediate,
}: FairTurnOptions): FairTurns {
  /** Time of each owner in this turn, and what it owes of earlier ones. */
  const spentMs = new Map<string, number>();
  /** The time of each owner's latest work, for owners that have spent time or wait. */
  const latestMs = new Map<string, number>();
  const queue = createFairQueue<() => void>();
  let counting = false;

  function count(): void {
    if (counting) return;
    counting = true;
    nextTurn(begin);
  }

  function begin(): void {
    counting = false;
    for (const [owner, ms] of spentMs) {
      if (ms > maxMs) spentMs.set(owner, Math.min(ms, MOST_TURNS_OWED * maxMs) - maxMs);
      else spentMs.delete(owner);
    }
    for (const owner of latestMs.keys()) if (queue.length(owner) === 0) latestMs.delete(owner);
    serve();
    if (!queue.isEmpty() || spentMs.size > 0) count();
  }

  /** Starts as many of each owner as should fit into its share, judged by its latest work. */
  function serve(): void {
    const left = new Map<string, number>();
    queue.serve((go, owner) => {
      const leftMs = left.get(owner) ?? maxMs - (spentMs.get(owner) ?? 0);
      if (leftMs <= 0) return "skip owner";
      left.set(owner, leftMs - (latestMs.get(owner) ?? maxMs));
      go();
      return "taken";
    });
  }

  return {
    enter(owner) {
      if (queue.length(owner) === 0 && (spentMs.get(owner) ?? 0) < maxMs) return null;
      const { promise, resolve } = Promise.withResolvers<void>();
      queue.add(owner, resolve);
      count();
      return promise;
    },
    spend(owner, work) {
      const began = now();
      try {
        return work();
      } finally {
        const took = now() - began;
        spentMs.set(owner, (spentMs.get(owner) ?? 0) + took);
        latestMs.set(owner, took);
        count();
      }
    },
  };
}
