import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";

/** What one account may add at once, and in an hour; a row counts for each 512 bytes of its detail. */
const BURST = 1_000;
const AN_HOUR = 200;
const HOUR_MS = 3_600_000;
const BYTES = 512;
/** Accounts that are remembered; who is forgotten has its burst again. */
const MOST_ACCOUNTS = 10_000;
const SPARSELY_MS = 60_000;

/** Not an account, and not to be kept from anything. */
const HOSTS: ReadonlySet<string> = new Set(["operator", "host"]);
/** Never refused and always told: each is bounded by what it takes, a mailed code, a key that was made, money. */
const ALWAYS = /^(sign_|account\.|payment\.|key\.revoke$)/;
/** Never refused, and repeated at will: beyond the allowance it is told once a minute. */
const SPARSELY = /^tokens?\./;

interface Bucket {
  left: number;
  atMs: number;
  /** When something was last told that is told sparsely. */
  sparselyAtMs: number;
}

/** How much of the audit log an account may fill. In memory: a restart gives everybody the burst again. */
export function createAuditAllowance(clock: Clock) {
  const buckets = new Map<string, Bucket>();

  function bucketOf(accountId: string): Bucket {
    const now = clock.now();
    const known = buckets.get(accountId);
    if (known) {
      // A clock that is set back gives nothing.
      known.left = Math.min(BURST, known.left + (Math.max(0, now - known.atMs) * AN_HOUR) / HOUR_MS);
      known.atMs = now;
      return known;
    }
    if (buckets.size >= MOST_ACCOUNTS) for (const oldest of buckets.keys()) if (buckets.delete(oldest)) break;
    const fresh = { left: BURST, atMs: now, sparselyAtMs: 0 };
    buckets.set(accountId, fresh);
    return fresh;
  }

  /**
   * Takes the room of one row. False where it is not to be written; throws `rate_limited` where what it tells is not to
   * be done.
   */
  return (actor: string, action: string, detail: string): boolean => {
    if (HOSTS.has(actor)) return true;
    const bucket = bucketOf(actor);
    const cost = 1 + Math.floor(detail.length / BYTES);
    const hasRoom = bucket.left >= cost;
    if (hasRoom) bucket.left -= cost;
    if (SPARSELY.test(action)) {
      const isTold = hasRoom || clock.now() - bucket.sparselyAtMs >= SPARSELY_MS;
      if (isTold) bucket.sparselyAtMs = clock.now();
      return isTold;
    }
    if (hasRoom || ALWAYS.test(action)) return true;
    const retryAfterSeconds = Math.ceil(((cost - bucket.left) * HOUR_MS) / AN_HOUR / 1000);
    throw new AppError(
      "rate_limited",
      `too many changes of keys and secrets, or new addresses of keys; try again in ${retryAfterSeconds} seconds`,
      { retryAfterSeconds },
    );
  };
}
