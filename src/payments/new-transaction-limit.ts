import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";

const MAX_PER_MINUTE = 100;
const WITHIN_NS = 60_000_000_000n;

/**
 * Limits how many new transactions an account may present per minute, each of which costs a few calls to nodes. `admit`
 * throws `rate_limited` beyond that.
 */
export function createNewTransactionLimit(clock: Clock): { admit(accountId: string, transaction: string): void } {
  const byAccount = new Map<string, Map<string, bigint>>();

  /** The oldest come first. */
  function forgetOld(seen: Map<string, bigint>): void {
    for (const [transaction, atNs] of seen) {
      if (clock.monotonicNs() - atNs < WITHIN_NS) return;
      seen.delete(transaction);
    }
  }

  return {
    admit(accountId, transaction) {
      for (const [id, seen] of byAccount) {
        forgetOld(seen);
        if (seen.size === 0) byAccount.delete(id);
      }
      const own = byAccount.get(accountId) ?? new Map<string, bigint>();
      if (own.has(transaction)) return;
      const [oldestNs] = own.values();
      if (own.size >= MAX_PER_MINUTE && oldestNs !== undefined) {
        const waitNs = WITHIN_NS - (clock.monotonicNs() - oldestNs);
        throw new AppError(
          "rate_limited",
          `more than ${MAX_PER_MINUTE} new transactions were presented within a minute`,
          {
            retryAfterSeconds: Number(waitNs) / 1e9,
          },
        );
      }
      byAccount.set(accountId, own.set(transaction, clock.monotonicNs()));
    },
  };
}
