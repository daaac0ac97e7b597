import { AppError } from "../lib/app-error.ts";
import { type Clock, secondsOf } from "../lib/clock.ts";
import type { AdmitEntry } from "../storage/audit.ts";
import { createFixedWindows } from "./fixed-windows.ts";
import { createTokenBuckets, type Rate } from "./token-buckets.ts";

/** What one account may add: a thousand rows at once, then 200 per hour; 512 bytes of detail count as one more row. */
const RATE: Rate = { perSecond: 200 / 3_600, burst: 1_000 };
const BYTES_PER_ROW = 512;
/** How many accounts are tracked; one that is dropped has its burst again. */
const MAX_ACCOUNTS = 10_000;
const ONCE_A_MINUTE = { seconds: 60, max: 1 };

/** Actors that are not accounts are never limited. */
const UNLIMITED_ACTORS: ReadonlySet<string> = new Set(["operator", "host"]);
/** Always logged and never refused: something else bounds each of them (mailed codes, existing keys, money). */
const ALWAYS_LOGGED = /^(sign_|account\.|payment\.|key\.revoke$)/;
/** Never refused, and repeatable at will: beyond the allowance they are logged once a minute. */
const SAMPLED = /^tokens?\./;
/**
 * Calls of tools, decisions about them, and secrets in their requests: agents cause all three, so each has rows of its
 * own, beyond which nothing is logged.
 */
const OF_AGENTS = /^(tool\.|approval\.|secret\.use$)/;
const AGENTS_RATE = { seconds: 60, max: 60 };

/**
 * Limits how fast an account may fill the audit log, throwing `rate_limited` if an action must be refused for it. Kept
 * in memory: a restart gives everybody the burst again.
 */
export function createAuditAllowance(clock: Clock): AdmitEntry {
  const now = secondsOf(clock);
  const rows = createTokenBuckets(now, MAX_ACCOUNTS);
  const ofAgents = createFixedWindows(now, AGENTS_RATE, 3 * MAX_ACCOUNTS);
  const samples = createFixedWindows(now, ONCE_A_MINUTE, MAX_ACCOUNTS);

  return (actor, action, detail) => {
    if (UNLIMITED_ACTORS.has(actor)) return true;
    const ofAgent = OF_AGENTS.exec(action)?.[0];
    if (ofAgent !== undefined) return ofAgents.count(ofAgent + actor) === 0;
    const wait = rows.take(actor, RATE, 1 + Math.floor(detail.length / BYTES_PER_ROW));
    if (SAMPLED.test(action)) return samples.count(actor) === 0 || wait === 0;
    if (wait === 0 || ALWAYS_LOGGED.test(action)) return true;
    throw new AppError(
      "rate_limited",
      `too many changes to keys and secrets, or keys used from too many new addresses; try again in ${Math.ceil(wait)} seconds`,
      { retryAfterSeconds: wait },
    );
  };
}
