import { and, asc, count, eq, gt, isNull, lte, ne, notExists, or, type SQL, sql } from "drizzle-orm";
import type { Micros } from "../lib/money.ts";
import type { Db } from "../storage/store.ts";
import { type Invoice, invoices, payments } from "./schema.ts";

/** All times are milliseconds since 1970. */
export function invoiceQueries(db: Db) {
  const isOpen = eq(invoices.status, "open");
  const isSince = (since: number) => gt(sql`coalesce(${invoices.paidAt}, ${invoices.createdAt})`, since);
  const expire = (which: SQL | undefined): void =>
    void db.update(invoices).set({ status: "expired" }).where(and(isOpen, which)).run();
  const isElsewhere = (address: string | null): SQL | undefined =>
    address === null
      ? undefined
      : and(ne(invoices.payTo, ""), ne(sql`lower(${invoices.payTo})`, address.toLowerCase()));
  const countOpen = (now: number): number =>
    db
      .select({ count: count() })
      .from(invoices)
      .where(and(isOpen, gt(invoices.expiresAt, now)))
      .get()?.count ?? 0;

  return {
    insert: (invoice: Omit<Invoice, "status" | "paidAt">): Invoice =>
      db
        .insert(invoices)
        .values({ ...invoice, status: "open" })
        .returning()
        .get(),
    find: (invoiceId: string): Invoice | undefined =>
      db.select().from(invoices).where(eq(invoices.invoiceId, invoiceId)).get(),
    /** Invoices that can still be paid, smallest first. */
    openOf: (accountId: string, now: number): Invoice[] =>
      db
        .select()
        .from(invoices)
        .where(and(eq(invoices.accountId, accountId), isOpen, gt(invoices.expiresAt, now)))
        .orderBy(asc(invoices.amount))
        .all(),
    /** Invoices of this amount that are open, or were opened or paid since then; newest first. */
    withAmount: (amount: Micros, since: number): Invoice[] =>
      db
        .select()
        .from(invoices)
        .where(and(eq(invoices.amount, amount), or(isOpen, isSince(since))))
        .orderBy(sql`${invoices.createdAt} DESC, ${invoices.invoiceId} DESC`)
        .all(),
    /** Invoices opened since then and not paid. */
    countUnpaid: (accountId: string, since: number): number =>
      db
        .select({ count: count() })
        .from(invoices)
        .where(and(eq(invoices.accountId, accountId), gt(invoices.createdAt, since), isNull(invoices.paidAt)))
        .get()?.count ?? 0,
    countOpen,
    setStatus: (invoiceId: string, change: Pick<Invoice, "status" | "paidAt">): void =>
      void db.update(invoices).set(change).where(eq(invoices.invoiceId, invoiceId)).run(),
    expire: (invoiceId: string): void => expire(eq(invoices.invoiceId, invoiceId)),
    /** Invoices that can still be paid, to an address other than this one; all of them if it is null. */
    openElsewhere: (now: number, address: string | null): Invoice[] =>
      db
        .select()
        .from(invoices)
        .where(and(isOpen, gt(invoices.expiresAt, now), isElsewhere(address)))
        .all(),
    /** Expires invoices, however long they would still be open. */
    expireElsewhere: (address: string | null): void => expire(isElsewhere(address)),
    /** Records this address for invoices from before addresses were recorded. */
    noteAddress: (address: string): void =>
      void db.update(invoices).set({ payTo: address }).where(eq(invoices.payTo, "")).run(),
    expireDue: (now: number): void => expire(lte(invoices.expiresAt, now)),
    /** Deletes at most `limit` expired invoices that were opened before then and never paid; returns how many. */
    prune(before: number, limit: number): number {
      const paid = db.select({ one: sql`1` }).from(payments).where(eq(payments.invoiceId, invoices.invoiceId));
      const old = db
        .select({ invoiceId: invoices.invoiceId })
        .from(invoices)
        // In the words of the partial index.
        .where(and(sql`${invoices.status} = 'expired'`, lte(invoices.createdAt, before), notExists(paid)))
        .orderBy(asc(invoices.createdAt))
        .limit(limit)
        .all();
      for (const { invoiceId } of old) db.delete(invoices).where(eq(invoices.invoiceId, invoiceId)).run();
      return old.length;
    },
  };
}
