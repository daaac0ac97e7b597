import { and, asc, desc, eq, gt, lte, notInArray, sql } from "drizzle-orm";
import type { Clock } from "../lib/clock.ts";
import type { Db, Store } from "../storage/store.ts";
import { signInAddresses } from "./schema.ts";

const KEPT_MS = 90 * 24 * 60 * 60 * 1000;
const MOST_OF_ONE = 20;

const isRecent = (now: number) => gt(signInAddresses.signedInAt, now - KEPT_MS);

/**
 * Notes that somebody signed in to this account from this address (its key, src/limits/address.ts), in the transaction of
 * the sign-in. The last 20 are kept, 90 days each.
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
    .limit(MOST_OF_ONE);
  db.delete(signInAddresses)
    .where(and(own, notInArray(signInAddresses.address, latest)))
    .run();
}

/** The addresses that this account has signed in from lately: at most 20. */
export const knownAddresses = (db: Db, accountId: string, now: number): string[] =>
  db
    .select({ address: signInAddresses.address })
    .from(signInAddresses)
    .where(and(eq(signInAddresses.accountId, accountId), isRecent(now)))
    .all()
    .map(({ address }) => address);

/** Removes at most `limit` that nobody has signed in from for 90 days. True when there may be more. */
export function pruneKnownAddresses({ db, transaction }: Store, clock: Clock, limit: number): boolean {
  return transaction(() => {
    const old = db
      .select()
      .from(signInAddresses)
      .where(lte(signInAddresses.signedInAt, clock.now() - KEPT_MS))
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
