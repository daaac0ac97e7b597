/** So many a second on average; at once at most as many as `burst`. */
export interface Rate {
  perSecond: number;
  burst: number;
}

export interface Rates {
  /**
   * Takes `cost` from what `who` may have at this rate. 0 when it was there; else nothing is taken, and the seconds after
   * which it will be there. A cost above the burst is taken as soon as the whole burst is there.
   */
  take(who: string, rate: Rate, cost?: number): number;
  /** Takes without asking: what was found to have cost more than it was let in for is paid back by waiting. */
  charge(who: string, rate: Rate, cost: number): void;
  /** The seconds until one could be taken; 0 for now. Takes nothing. */
  wait(who: string, rate: Rate): number;
}

/** Those that are remembered at once. What is forgotten beyond it was quiet, or is the longest known. */
const MAX_REMEMBERED = 100_000;
const SWEPT_AT_ONCE = 64;

/**
 * Token buckets, each as the one number that the generic cell rate algorithm needs: the time at which the bucket is full
 * again. A bucket that is full is nothing to remember. `now` gives seconds of a clock that never steps.
 */
export function createRates(now: () => number, maxRemembered = MAX_REMEMBERED): Rates {
  const fullAt = new Map<string, number>();

  function set(who: string, time: number): void {
    if (!fullAt.has(who) && fullAt.size >= maxRemembered) sweep();
    fullAt.set(who, time);
  }

  /** Forgets some that are full again; where none is, the one that has been known for longest. */
  function sweep(): void {
    const at = now();
    let looked = 0;
    for (const [who, time] of fullAt) {
      if (time <= at || looked === 0) fullAt.delete(who);
      if (++looked >= SWEPT_AT_ONCE) return;
    }
  }

  const waitFor = (who: string, { perSecond, burst }: Rate, cost: number): number => {
    const at = now();
    const start = Math.max(fullAt.get(who) ?? at, at);
    const over = start + Math.min(cost, burst) / perSecond - (at + burst / perSecond);
    // What rounding leaves of a number of seconds since the machine's start.
    return over > 1e-9 ? over : 0;
  };

  function charge(who: string, { perSecond }: Rate, cost: number): void {
    const at = now();
    set(who, Math.max(fullAt.get(who) ?? at, at) + cost / perSecond);
  }

  return {
    take(who, rate, cost = 1) {
      const wait = waitFor(who, rate, cost);
      if (wait === 0) charge(who, rate, cost);
      return wait;
    },
    charge,
    wait: (who, rate) => waitFor(who, rate, 1),
  };
}
