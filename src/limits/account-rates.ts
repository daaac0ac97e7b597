import { AppError } from "../lib/app-error.ts";
import type { LimitsOfAccounts } from "./account-limits.ts";
import { createTokenBuckets, type Rate } from "./token-buckets.ts";

/** GETs are reads, all other requests are writes. */
export type RateName = "reads" | "writes";

export interface AccountRates {
  /** Admits one request, or throws `rate_limited`. `cost` counts ordinary requests. */
  admit(accountId: string, name: RateName, cost?: number): void;
  /**
   * Charges what a read cost beyond an ordinary one: by the bytes of its answer, and by the milliseconds for which it
   * held the thread that serves everybody. The reads that follow wait for it.
   */
  chargeRead(accountId: string, answerBytes: number, ms: number): void;
  /** The same for a write, but by the bytes of its answer alone: its time is spent waiting for the disk. */
  chargeWrite(accountId: string, answerBytes: number): void;
}

/** Every so many bytes of an answer cost one more request. */
const ORDINARY_ANSWER_BYTES = 4 * 1024;
/** An account's reads may hold the thread for a quarter of the time, whatever they read. */
const MAX_THREAD_MS_PER_SECOND = 250;
/** With a rate above this, the operator has allowed the account more of the thread. */
const ORDINARY_READS_PER_SECOND = 5_000;
/** What a read takes longer, the machine took for something else; that time is not charged. */
const MAX_READ_MS = 25;

const costOfSize = (answerBytes: number): number => Math.floor(answerBytes / ORDINARY_ANSWER_BYTES);

/** What a read cost beyond an ordinary one, for an account with `perSecond` reads. */
export function costOfRead(answerBytes: number, ms: number, perSecond: number): number {
  const ordinaryMs = MAX_THREAD_MS_PER_SECOND / Math.min(perSecond, ORDINARY_READS_PER_SECOND);
  return Math.max(costOfSize(answerBytes), Math.ceil(Math.min(ms, MAX_READ_MS) / ordinaryMs) - 1);
}

/** How many seconds' worth of requests a burst may hold (docs/contract/api.md, Limits). */
const BURST_SECONDS: Record<RateName, number> = { reads: 1, writes: 5 };
/** An operator's change of a limit takes effect after this. */
const CACHE_SECONDS = 1;
const MAX_CACHED = 10_000;

type CachedRates = Record<RateName, { rate: Rate; key: string }> & { until: number };

/** `now` gives seconds of a monotonic clock. */
export function createAccountRates(limits: Pick<LimitsOfAccounts, "of">, now: () => number): AccountRates {
  const buckets = createTokenBuckets(now);
  const cache = new Map<string, CachedRates>();

  function lookUp(accountId: string): CachedRates {
    const found = cache.get(accountId);
    const at = now();
    if (found && found.until > at) return found;
    const { reads, writes } = limits.of(accountId);
    const rateOf = (name: RateName, perSecond: number) => ({
      rate: { perSecond, burst: perSecond * BURST_SECONDS[name] },
      key: `${name} ${accountId}`,
    });
    const fresh = { reads: rateOf("reads", reads), writes: rateOf("writes", writes), until: at + CACHE_SECONDS };
    // Clearing the whole cache costs one look-up for each account.
    if (cache.size >= MAX_CACHED) cache.clear();
    cache.set(accountId, fresh);
    return fresh;
  }

  return {
    admit(accountId, name, cost = 1) {
      const { rate, key } = lookUp(accountId)[name];
      const wait = buckets.take(key, rate, cost);
      if (wait === 0) return;
      throw new AppError(
        "rate_limited",
        `more than ${rate.perSecond} ${name} per second by this account; try again later`,
        {
          retryAfterSeconds: wait,
        },
      );
    },
    chargeRead(accountId, answerBytes, ms) {
      const { rate, key } = lookUp(accountId).reads;
      const cost = costOfRead(answerBytes, ms, rate.perSecond);
      if (cost > 0) buckets.charge(key, rate, cost);
    },
    chargeWrite(accountId, answerBytes) {
      const cost = costOfSize(answerBytes);
      if (cost === 0) return;
      const { rate, key } = lookUp(accountId).writes;
      buckets.charge(key, rate, cost);
    },
  };
}
