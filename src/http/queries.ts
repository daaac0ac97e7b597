import { and, asc, desc, eq, lt, lte, sql } from "drizzle-orm";
import { lazily } from "../lib/lazily.ts";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { type IdempotentRequest, idempotentRequests } from "./schema.ts";

export function idempotencyQueries(db: Db) {
  const p = sql.placeholder;
  const { accountId, key, place, createdAt } = idempotentRequests;
  const ofAccount = eq(accountId, p("accountId"));
  const find = prepared(db, () =>
    db
      .select()
      .from(idempotentRequests)
      .where(and(ofAccount, eq(key, p("key")))),
  );
  const newest = prepared(db, () =>
    db.select({ place }).from(idempotentRequests).where(ofAccount).orderBy(desc(place)).limit(1),
  );
  const put = lazily(() => {
    const excluded = (name: string) => sql.raw(`excluded.${name}`);
    return db
      .insert(idempotentRequests)
      .values({
        accountId: p("accountId"),
        key: p("key"),
        place: p("place"),
        requestMac: p("requestMac"),
        status: p("status"),
        body: p("body"),
        record: p("record"),
        runId: p("runId"),
        createdAt: p("createdAt"),
      })
      .onConflictDoUpdate({
        target: [accountId, key],
        set: {
          place: excluded("place"),
          requestMac: excluded("request_mac"),
          status: excluded("status"),
          body: excluded("body"),
          record: excluded("record"),
          runId: excluded("run_id"),
          createdAt: excluded("created_at"),
        },
      })
      .prepare();
  });
  const evict = prepared(db, () => db.delete(idempotentRequests).where(and(ofAccount, lte(place, p("last")))));
  const old = prepared(db, () =>
    db
      .select({ accountId, key })
      .from(idempotentRequests)
      .where(lt(createdAt, p("before")))
      .orderBy(asc(createdAt))
      .limit(p("max")),
  );
  return {
    find: (accountId: string, key: string): IdempotentRequest | undefined => find.get({ accountId, key }),
    /** Keeps only the account's newest `max` rows; older ones are found by index, without counting. */
    save(row: Omit<IdempotentRequest, "place">, max: number): void {
      const place = (newest.get({ accountId: row.accountId })?.place ?? 0) + 1;
      put().run({ ...row, place });
      evict.run({ accountId: row.accountId, last: place - max });
    },
    /** Removes at most `max` rows stored before this time (milliseconds); returns how many. */
    prune(before: number, max: number): number {
      const rows = old.all({ before, max });
      for (const row of rows) {
        db.delete(idempotentRequests)
          .where(and(eq(accountId, row.accountId), eq(key, row.key)))
          .run();
      }
      return rows.length;
    },
  };
}
