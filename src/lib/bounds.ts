/** Lets at most `count` works run at once; the others wait, first come first served. */
export function createLanes(count: number): <T>(work: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];

  return async (work) => {
    if (running >= count) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      // Who waits takes over the lane.
      if (next) next();
      else running -= 1;
    }
  };
}

/** Does the work for every item, at most `count` at once, whatever fails; then throws what the first that failed has thrown. */
export async function forEachInLanes<T>(
  count: number,
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  const inLane = createLanes(count);
  const results = await Promise.allSettled(items.map((item) => inLane(() => work(item))));
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

/** What the promise gives, or null when it takes longer than `ms`; it is left to itself then. */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  const { promise: late, resolve } = Promise.withResolvers<null>();
  const timer = setTimeout(() => resolve(null), ms);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
