/** An average rate, and the most that may come at once. */
export interface Rate {
  perSecond: number;
  burst: number;
}

export interface TokenBuckets {
  /**
   * Takes `cost` tokens from the key's bucket and returns 0, or takes nothing and returns the seconds until they will
   * be there. A cost above the burst is taken as soon as the bucket is full.
   */
  take(key: string, rate: Rate, cost?: number): number;
  /** Takes tokens that may not be there; later calls wait until they are. */
  charge(key: string, rate: Rate, cost: number): void;
  /** The seconds until so many tokens are there, by default one; 0 if they are. Takes nothing. */
  wait(key: string, rate: Rate, cost?: number): number;
}

/** Beyond this, full buckets are dropped, or the oldest one. */
const MAX_BUCKETS = 100_000;
const SWEEP_BATCH = 64;

/**
 * Token buckets, kept as the generic cell rate algorithm does: one number each, the time at which the bucket is full
 * again. A full bucket need not be kept. `now` gives seconds of a monotonic clock.
 */
export function createTokenBuckets(now: () => number, maxBuckets = MAX_BUCKETS): TokenBuckets {
  const fullAt = new Map<string, number>();

  function set(key: string, time: number): void {
    if (!fullAt.has(key) && fullAt.size >= maxBuckets) sweep();
    fullAt.set(key, time);
  }

  /** Drops some full buckets; if there are none, the oldest one. */
  function sweep(): void {
    const at = now();
    let looked = 0;
    for (const [key, time] of fullAt) {
      if (time <= at || looked === 0) fullAt.delete(key);
      if (++looked >= SWEEP_BATCH) return;
    }
  }

  const waitFor = (key: string, { perSecond, burst }: Rate, cost: number): number => {
    const at = now();
    const start = Math.max(fullAt.get(key) ?? at, at);
    const over = start + Math.min(cost, burst) / perSecond - (at + burst / perSecond);
    // Below this it is a rounding error: `now` counts from the machine's start.
    return over > 1e-9 ? over : 0;
  };

  function charge(key: string, { perSecond }: Rate, cost: number): void {
    const at = now();
    set(key, Math.max(fullAt.get(key) ?? at, at) + cost / perSecond);
  }

  return {
    take(key, rate, cost = 1) {
      const wait = waitFor(key, rate, cost);
      if (wait === 0) charge(key, rate, cost);
      return wait;
    },
    charge,
    wait: (key, rate, cost = 1) => waitFor(key, rate, cost),
  };
}
