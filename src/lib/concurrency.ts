/** Runs at most `count` works at once; the others wait in order. */
export function createLimiter(count: number): <T>(work: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];

  return async (work) => {
    if (running >= count) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      // The next one takes over this one's slot.
      if (next) next();
      else running -= 1;
    }
  };
}

/** Does the work for every item, at most `count` at once, even if some fail; then rethrows the first failure. */
export async function forEachLimited<T>(
  count: number,
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  const limit = createLimiter(count);
  const results = await Promise.allSettled(items.map((item) => limit(() => work(item))));
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

/** The promise's value, or null if it takes longer than `ms`. The promise itself is not cancelled. */
export async function withTimeout<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  const { promise: late, resolve } = Promise.withResolvers<null>();
  const timer = setTimeout(() => resolve(null), ms);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
