import { and, asc, count, eq, gt, ne, sql } from "drizzle-orm";
import { balances } from "../ledger/schema.ts";
import { lazily } from "../lib/lazily.ts";
import type { Micros } from "../lib/money.ts";
import type { Db } from "../storage/store.ts";
import { type PaymentRow, payments } from "./schema.ts";

export type PaymentStatus = PaymentRow["status"];

/** Hashes are in lower case. */
export function paymentQueries(db: Db) {
  /** Prepared once: whatever is presented is looked up, several times over. */
  const ofTransaction = lazily(() =>
    db
      .select()
      .from(payments)
      .where(and(eq(payments.chainId, sql.placeholder("chainId")), eq(payments.txHash, sql.placeholder("txHash"))))
      .orderBy(asc(payments.logIndex))
      .prepare(),
  );
  return {
    ofTransaction: (chainId: number, txHash: string): PaymentRow[] => ofTransaction().all({ chainId, txHash }),
    insert: (row: Omit<PaymentRow, "paymentId">): PaymentRow => db.insert(payments).values(row).returning().get(),
    change: (paymentId: number, change: Partial<PaymentRow>): void =>
      void db.update(payments).set(change).where(eq(payments.paymentId, paymentId)).run(),
    /** Whether a transfer that is not reversed has paid the invoice. */
    isPaid: (accountId: string, invoiceId: string): boolean =>
      db
        .select({ paymentId: payments.paymentId })
        .from(payments)
        .where(
          and(eq(payments.accountId, accountId), eq(payments.invoiceId, invoiceId), ne(payments.status, "reversed")),
        )
        .limit(1)
        .get() !== undefined,
    /** Transactions with transfers that are not final, ordered by hash. */
    toRecheck: (chainId: number, after: string, limit: number): string[] =>
      db
        .selectDistinct({ txHash: payments.txHash })
        .from(payments)
        .where(and(eq(payments.chainId, chainId), eq(payments.status, "credited"), gt(payments.txHash, after)))
        .orderBy(asc(payments.txHash))
        .limit(limit)
        .all()
        .map(({ txHash }) => txHash),
    countByStatus: (): Record<PaymentStatus, number> => ({
      credited: 0,
      final: 0,
      reversed: 0,
      ...Object.fromEntries(
        db
          .select({ status: payments.status, count: count() })
          .from(payments)
          .groupBy(payments.status)
          .all()
          .map((row) => [row.status, row.count]),
      ),
    }),
    /** Adds to what the account owes for reversed top-ups; `amount` may be negative. */
    addOwed: (accountId: string, amount: Micros): void =>
      void db
        .update(balances)
        .set({ owed: sql`${balances.owed} + ${Number(amount)}` })
        .where(eq(balances.accountId, accountId))
        .run(),
  };
}
