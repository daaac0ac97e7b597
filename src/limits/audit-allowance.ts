import { AppError } from "../lib/app-error.ts";
import { type Clock, secondsOf } from "../lib/clock.ts";
import type { AdmitEntry } from "../storage/audit.ts";
import { createRates, type Rate } from "./rates.ts";
import { createWindows } from "./windows.ts";

/** What one account may add: a thousand rows at once, 200 an hour; a row counts for each 512 bytes of its detail. */
const RATE: Rate = { perSecond: 200 / 3_600, burst: 1_000 };
const BYTES = 512;
/** Accounts that are remembered; who is forgotten has its burst again. */
const MOST_ACCOUNTS = 10_000;
const ONCE_A_MINUTE = { seconds: 60, most: 1 };

/** Not an account, and not to be kept from anything. */
const HOSTS: ReadonlySet<string> = new Set(["operator", "host"]);
/** Never refused and always told: each is bounded by what it takes, a mailed code, a key that was made, money. */
const ALWAYS = /^(sign_|account\.|payment\.|key\.revoke$)/;
/** Never refused, and repeated at will: beyond the allowance it is told once a minute. */
const SPARSELY = /^tokens?\./;

/**
 * How much of the audit log an account may fill. In memory: a restart gives everybody the burst again. What it gives throws
 * `rate_limited` where what an entry tells is not to be done.
 */
export function createAuditAllowance(clock: Clock): AdmitEntry {
  const now = secondsOf(clock);
  const rows = createRates(now, MOST_ACCOUNTS);
  const sparse = createWindows(now, ONCE_A_MINUTE, MOST_ACCOUNTS);

  return (actor, action, detail) => {
    if (HOSTS.has(actor)) return true;
    const wait = rows.take(actor, RATE, 1 + Math.floor(detail.length / BYTES));
    if (SPARSELY.test(action)) return sparse.count(actor) === 0 || wait === 0;
    if (wait === 0 || ALWAYS.test(action)) return true;
    throw new AppError(
      "rate_limited",
      `too many changes of keys and secrets, or new addresses of keys; try again in ${Math.ceil(wait)} seconds`,
      { retryAfterSeconds: wait },
    );
  };
}
