import { and, desc, eq, inArray, lt, lte, notInArray, type SQL } from "drizzle-orm";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { Db, Store } from "../storage/store.ts";
import { type Invite, signInCodes } from "./schema.ts";
import { knownAddresses } from "./sign-in-addresses.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

interface Limit {
  windowMs: number;
  max: number;
}

/** docs/contract/api.md, Signing in. */
const OF_EMAIL: readonly Limit[] = [
  { windowMs: MINUTE, max: 1 },
  { windowMs: HOUR, max: 5 },
  { windowMs: DAY, max: 10 },
];
const OF_ADDRESS: Limit = { windowMs: HOUR, max: 20 };
/** Mails that strangers may trigger with an invite: leaves room for mistyped addresses and retries. */
const ofInvite = ({ uses }: Invite): Limit => ({ windowMs: DAY, max: 10 + 3 * uses });

/**
 * Limits how many sign-in codes may be sent, counting their rows, so that a restart resets nothing and refused mails
 * count too. Call these in the transaction that writes such a row. All throw `rate_limited`.
 */
export interface CodeLimits {
  /** `address` is an address key (src/limits/address.ts). */
  checkAddress(address: string): void;
  /** `accountId` is the e-mail's account, or null. */
  checkEmail(email: string, accountId: string | null, address: string): void;
  checkInvite(invite: Invite): void;
}

export function createCodeLimits(db: Db, clock: Clock): CodeLimits {
  function check(which: SQL | undefined, { windowMs, max }: Limit, what: string): void {
    const now = clock.now();
    // The oldest of the newest `max`: when it leaves the window there is room for one more. Not one that seems to be of the
    // future, from when the clock was ahead: nobody could sign in until then.
    const deciding = db
      .select({ sentAt: signInCodes.createdAt })
      .from(signInCodes)
      .where(and(which, lte(signInCodes.createdAt, now)))
      .orderBy(desc(signInCodes.createdAt))
      .limit(1)
      .offset(max - 1)
      .get();
    const waitMs = deciding ? deciding.sentAt + windowMs - now : 0;
    if (waitMs <= 0) return;
    const retryAfterSeconds = Math.ceil(waitMs / 1000);
    throw new AppError(
      "rate_limited",
      `too many codes were requested${what}; try again in ${retryAfterSeconds} seconds`,
      {
        retryAfterSeconds,
      },
    );
  }

  return {
    checkAddress: (address) => check(eq(signInCodes.address, address), OF_ADDRESS, ""),
    checkEmail(email, accountId, address) {
      // Requests from unknown addresses are counted apart, so that strangers cannot use up the account's own allowance.
      const known = accountId === null ? [] : knownAddresses(db, accountId, clock.now());
      const group = known.includes(address) ? inArray : notInArray;
      for (const limit of OF_EMAIL)
        check(and(eq(signInCodes.email, email), group(signInCodes.address, known)), limit, "");
    },
    checkInvite: (invite) => check(eq(signInCodes.inviteId, invite.inviteId), ofInvite(invite), " with this invite"),
  };
}

/** Removes at most `limit` codes that no limit counts any more. Returns whether there may be more. */
export function pruneSignInCodes({ db, transaction }: Store, clock: Clock, limit: number): boolean {
  return transaction(() => {
    const old = db
      .select({ codeId: signInCodes.codeId })
      .from(signInCodes)
      .where(lt(signInCodes.createdAt, clock.now() - DAY))
      .limit(limit);
    const { codeId } = signInCodes;
    return db.delete(signInCodes).where(inArray(codeId, old)).returning({ codeId }).all().length === limit;
  });
}
