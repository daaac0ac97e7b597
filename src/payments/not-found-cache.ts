import type { Clock } from "../lib/clock.ts";
import { createFairCache } from "../lib/fair-cache.ts";

const MAX_PER_ACCOUNT = 200;
const MAX_ENTRIES = 10_000;

/** Remembers what was not found on a chain, until it is worth another lookup. */
export interface NotFoundCache<T> {
  /** The answer to repeat; undefined when it may be looked up again. */
  find(key: string): T | undefined;
  /** `accountId` is the account on whose behalf it was looked up. */
  note(key: string, accountId: string, said: T, seconds: number): void;
  forget(key: string): void;
}

/**
 * Implements "not looked for again before its `Retry-After`" (docs/contract/billing.md, Nodes), for all callers.
 * Bounded in total and per account, so that an account that asks for many unknown transactions evicts only its own.
 */
export function createNotFoundCache<T>(clock: Clock): NotFoundCache<T> {
  const known = createFairCache<{ said: T; untilNs: bigint }>(MAX_ENTRIES, MAX_PER_ACCOUNT);
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
