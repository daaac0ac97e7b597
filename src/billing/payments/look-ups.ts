import { AppError } from "../../lib/app-error.ts";
import type { Clock } from "../../lib/clock.ts";

/** Who comes again when he is told to looks thirty times a minute for each of his payments. */
const MOST = 300;
const WITHIN_NS = 60_000_000_000n;

interface Minute {
  endsAtNs: bigint;
  count: number;
}

/**
 * Bounds how often a minute nodes are asked on behalf of an account, whatever it presents and however often. `admit`
 * throws `rate_limited` for one look too many.
 */
export function createLookUps(clock: Clock): { admit(accountId: string): void } {
  /** Oldest first. */
  const minutes = new Map<string, Minute>();

  return {
    admit(accountId) {
      const now = clock.monotonicNs();
      for (const [id, { endsAtNs }] of minutes) {
        if (endsAtNs > now) break;
        minutes.delete(id);
      }
      const minute = minutes.get(accountId) ?? { endsAtNs: now + WITHIN_NS, count: 0 };
      if (minute.count >= MOST) {
        throw new AppError("rate_limited", `transactions were looked for more than ${MOST} times within a minute`, {
          retryAfterSeconds: Number(minute.endsAtNs - now) / 1e9,
        });
      }
      minute.count += 1;
      minutes.set(accountId, minute);
    },
  };
}
