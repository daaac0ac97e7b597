import { and, between, desc, eq, gt, inArray, ne, sql } from "drizzle-orm";
import { balances } from "../ledger/schema.ts";
import { daysOf, monthOf } from "../lib/calendar.ts";
import type { Micros } from "../lib/money.ts";
import { usageDays } from "../meter/schema.ts";
import type { Db } from "../storage/store.ts";
import {
  type AuthorizationRow,
  authorizations,
  type Claim,
  claims,
  type Invoice,
  invoices,
  type PaymentRow,
  payments,
} from "./schema.ts";

/** An account's money, as last committed. */
export interface AccountSummary {
  owed: Micros;
  /** Usage of this calendar month (UTC). */
  spentThisMonth: Micros;
  /** All usage in the ledger. */
  revenue: Micros;
  openInvoices: Invoice[];
  /** Presented transactions that were credited to nobody, newest first. */
  uncredited: Claim[];
  /** Signed payments that were passed to a facilitator and have not arrived, newest first. */
  signed: AuthorizationRow[];
  /** Newest first. */
  payments: PaymentRow[];
}

const MAX_ROWS = 20;

/** For operators whose customer paid and sees no balance. */
export function readAccountSummary(db: Db, accountId: string, nowMs: number): AccountSummary {
  const { first, last } = daysOf(monthOf(nowMs));
  const month = and(eq(usageDays.accountId, accountId), between(usageDays.day, first, last));
  const spent = db
    .select({ sum: sql<number>`total(${usageDays.cost})` })
    .from(usageDays)
    .where(month)
    .get();
  const [revenue] = db.all<{ sum: number }>(sql`
    SELECT total(amount) AS sum FROM journal_entries JOIN postings USING (entry_id)
    WHERE type = 'usage' AND account_id = ${accountId} AND ledger_account = 'revenue'`);
  const isOpen = and(eq(invoices.accountId, accountId), eq(invoices.status, "open"), gt(invoices.expiresAt, nowMs));
  const isUncredited = and(eq(claims.accountId, accountId), inArray(claims.status, ["pending", "refused", "expired"]));
  const isSigned = and(eq(authorizations.accountId, accountId), ne(authorizations.status, "credited"));
  return {
    owed: db.select().from(balances).where(eq(balances.accountId, accountId)).get()?.owed ?? 0n,
    spentThisMonth: BigInt(spent?.sum ?? 0),
    revenue: BigInt(revenue?.sum ?? 0),
    openInvoices: db.select().from(invoices).where(isOpen).orderBy(desc(invoices.createdAt)).all(),
    uncredited: db.select().from(claims).where(isUncredited).orderBy(desc(claims.createdAt)).limit(MAX_ROWS).all(),
    signed: db
      .select()
      .from(authorizations)
      .where(isSigned)
      .orderBy(desc(authorizations.createdAt))
      .limit(MAX_ROWS)
      .all(),
    payments: db
      .select()
      .from(payments)
      .where(eq(payments.accountId, accountId))
      .orderBy(desc(payments.paymentId))
      .limit(MAX_ROWS)
      .all(),
  };
}
