import type { Clock } from "../lib/clock.ts";
import { createFairCache } from "../lib/fair-cache.ts";

const MOST_OF_AN_ACCOUNT = 200;
const MOST = 10_000;

/** What was looked for on a chain and was not there, until it is worth another look. */
export interface Missing<T> {
  /** What was said of it, while it need not be looked for again; undefined when it may be. */
  find(key: string): T | undefined;
  /** `accountId`: on whose behalf it was looked for. */
  note(key: string, accountId: string, said: T, seconds: number): void;
  forget(key: string): void;
}

/**
 * "Not looked for again before its `Retry-After`" (api.md section 1), for whoever asks. Bounded for each account, so that
 * who names many things that do not exist pushes out his own and nobody else's; and in all.
 */
export function createMissing<T>(clock: Clock): Missing<T> {
  const known = createFairCache<{ said: T; untilNs: bigint }>(MOST, MOST_OF_AN_ACCOUNT);
  return {
    find(key) {
      const found = known.get(key);
      if (found === undefined || found.untilNs > clock.monotonicNs()) return found?.said;
      known.delete(key);
      return undefined;
    },
    note(key, accountId, said, seconds) {
      known.set(accountId, key, { said, untilNs: clock.monotonicNs() + BigInt(Math.ceil(seconds * 1e9)) });
    },
    forget: known.delete,
  };
}
