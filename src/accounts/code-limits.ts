import { and, desc, eq, inArray, lt, notInArray, type SQL } from "drizzle-orm";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { Db, Store } from "../storage/store.ts";
import { knownAddresses } from "./known-addresses.ts";
import { type Invite, signInCodes } from "./schema.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** At most so many within so long. */
interface Limit {
  windowMs: number;
  most: number;
}

/** api.md section 2. */
const OF_EMAIL: readonly Limit[] = [
  { windowMs: MINUTE, most: 1 },
  { windowMs: HOUR, most: 5 },
  { windowMs: DAY, most: 10 },
];
const OF_ADDRESS: Limit = { windowMs: HOUR, most: 20 };
/** What an invite lets strangers have mailed to whom they like: room for mistyped addresses and for trying again. */
const ofInvite = ({ uses }: Invite): Limit => ({ windowMs: DAY, most: 10 + 3 * uses });

/**
 * How many sign-in codes may be sent, counted from the rows of those that were, so that a restart resets nothing and a
 * mail that was refused counts too. What writes such a row asks in the same transaction. All throw `rate_limited`.
 */
export interface CodeLimits {
  /** `address` is an address key (src/limits/address.ts). */
  checkAddress(address: string): void;
  /** `accountId` is that of the e-mail's account, null where it has none. */
  checkEmail(email: string, accountId: string | null, address: string): void;
  checkInvite(invite: Invite): void;
}

export function createCodeLimits(db: Db, clock: Clock): CodeLimits {
  function check(which: SQL | undefined, { windowMs, most }: Limit, what: string): void {
    // The oldest of the newest `most`: once it leaves the window there is room for one more.
    const deciding = db
      .select({ sentAt: signInCodes.createdAt })
      .from(signInCodes)
      .where(which)
      .orderBy(desc(signInCodes.createdAt))
      .limit(1)
      .offset(most - 1)
      .get();
    const waitMs = deciding ? deciding.sentAt + windowMs - clock.now() : 0;
    if (waitMs <= 0) return;
    const retryAfterSeconds = Math.ceil(waitMs / 1000);
    throw new AppError(
      "rate_limited",
      `too many codes were asked for${what}; try again in ${retryAfterSeconds} seconds`,
      {
        retryAfterSeconds,
      },
    );
  }

  return {
    checkAddress: (address) => check(eq(signInCodes.address, address), OF_ADDRESS, ""),
    checkEmail(email, accountId, address) {
      // What strangers ask for in somebody's name is counted apart: it leaves alone what the account's own places may have.
      const known = accountId === null ? [] : knownAddresses(db, accountId, clock.now());
      const group = known.includes(address) ? inArray : notInArray;
      for (const limit of OF_EMAIL)
        check(and(eq(signInCodes.email, email), group(signInCodes.address, known)), limit, "");
    },
    checkInvite: (invite) => check(eq(signInCodes.inviteId, invite.inviteId), ofInvite(invite), " with this invite"),
  };
}

/** Removes at most `limit` codes that no limit counts any more. True when there may be more. */
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
