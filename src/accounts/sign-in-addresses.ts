import { and, asc, desc, eq, gt, lte, notInArray, sql } from "drizzle-orm";
import type { Clock } from "../lib/clock.ts";
import type { Db, Store } from "../storage/store.ts";
import { signInAddresses } from "./schema.ts";

const KEEP_MS = 90 * 24 * 60 * 60 * 1000;
const MAX_PER_ACCOUNT = 20;

const isRecent = (now: number) => gt(signInAddresses.signedInAt, now - KEEP_MS);

/**
 * Records the address key (src/limits/address.ts) of a sign-in, in its transaction. The last 20 are kept, for 90 days
 * each.
 */
export function rememberAddress(db: Db, accountId: string, address: string, now: number): void {
  db.insert(signInAddresses)
    .values({ accountId, address, signedInAt: now })
    .onConflictDoUpdate({
      target: [signInAddresses.accountId, signInAddresses.address],
      set: { signedInAt: sql`excluded.signed_in_at` },
    })
    .run();
  const own = eq(signInAddresses.accountId, accountId);
  const latest = db
    .select({ address: signInAddresses.address })
    .from(signInAddresses)
    .where(own)
    .orderBy(desc(signInAddresses.signedInAt))
    .limit(MAX_PER_ACCOUNT);
  db.delete(signInAddresses)
    .where(and(own, notInArray(signInAddresses.address, latest)))
    .run();
}

/** The at most 20 addresses from which the account has recently signed in. */
export const knownAddresses = (db: Db, accountId: string, now: number): string[] =>
  db
    .select({ address: signInAddresses.address })
    .from(signInAddresses)
    .where(and(eq(signInAddresses.accountId, accountId), isRecent(now)))
    .all()
    .map(({ address }) => address);

/** Removes at most `limit` addresses not used for 90 days. Returns whether there may be more. */
export function pruneKnownAddresses({ db, transaction }: Store, clock: Clock, limit: number): boolean {
  return transaction(() => {
    const old = db
      .select()
      .from(signInAddresses)
      .where(lte(signInAddresses.signedInAt, clock.now() - KEEP_MS))
      .orderBy(asc(signInAddresses.signedInAt))
      .limit(limit)
      .all();
    for (const { accountId, address } of old) {
      db.delete(signInAddresses)
        .where(and(eq(signInAddresses.accountId, accountId), eq(signInAddresses.address, address)))
        .run();
    }
    return old.length === limit;
  });
}
