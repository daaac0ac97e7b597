import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";

const MOST = 100;
const WITHIN_NS = 60_000_000_000n;

/**
 * Bounds how many transactions an account may name that nobody has named before: each costs this host's nodes a few
 * calls. `admit` throws `rate_limited` for one too many within a minute.
 */
export function createNewTransactionLimit(clock: Clock): { admit(accountId: string, transaction: string): void } {
  const byAccount = new Map<string, Map<string, bigint>>();

  /** Oldest first, so that what is over stands at the front. */
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
      if (own.size >= MOST && oldestNs !== undefined) {
        const waitNs = WITHIN_NS - (clock.monotonicNs() - oldestNs);
        throw new AppError("rate_limited", `more than ${MOST} new transactions were presented within a minute`, {
          retryAfterSeconds: Number(waitNs) / 1e9,
        });
      }
      byAccount.set(accountId, own.set(transaction, clock.monotonicNs()));
    },
  };
}
