import type { Clock } from "../../lib/clock.ts";

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

interface Entry<T> {
  accountId: string;
  said: T;
  untilNs: bigint;
}

/**
 * "Not looked for again before its `Retry-After`" (api.md section 1), for whoever asks. Bounded for each account, so that
 * who names many things that do not exist pushes out his own and nobody else's; and in all.
 */
export function createMissing<T>(clock: Clock): Missing<T> {
  const entries = new Map<string, Entry<T>>();
  /** The keys of each account, oldest first. */
  const keysOf = new Map<string, Set<string>>();

  function forget(key: string): void {
    const entry = entries.get(key);
    if (entry === undefined) return;
    entries.delete(key);
    const own = keysOf.get(entry.accountId);
    own?.delete(key);
    if (own?.size === 0) keysOf.delete(entry.accountId);
  }

  /** From the oldest on, to the first that counts still. */
  function forgetOver(): void {
    for (const [key, { untilNs }] of entries) {
      if (untilNs > clock.monotonicNs()) return;
      forget(key);
    }
  }

  function makeRoom(accountId: string): void {
    const own = keysOf.get(accountId);
    const [ownOldest] = own ?? [];
    if (own !== undefined && ownOldest !== undefined && (own.size >= MOST_OF_AN_ACCOUNT || entries.size >= MOST)) {
      forget(ownOldest);
    } else if (entries.size >= MOST) {
      const [oldest] = entries.keys();
      if (oldest !== undefined) forget(oldest);
    }
  }

  return {
    find(key) {
      const entry = entries.get(key);
      if (entry === undefined || entry.untilNs > clock.monotonicNs()) return entry?.said;
      forget(key);
      return undefined;
    },
    note(key, accountId, said, seconds) {
      forgetOver();
      forget(key);
      makeRoom(accountId);
      entries.set(key, { accountId, said, untilNs: clock.monotonicNs() + BigInt(Math.ceil(seconds * 1e9)) });
      keysOf.set(accountId, (keysOf.get(accountId) ?? new Set()).add(key));
    },
    forget,
  };
}
