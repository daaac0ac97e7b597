import { sql } from "drizzle-orm";
import type { Micros } from "../lib/money.ts";
import type { Db } from "../storage/store.ts";

interface Sum {
  amount: number | null;
  upTo: number | null;
}

/** The balances of all customers together, as last committed. */
export function sumBalances(db: Db): Micros {
  const [sum] = db.all<Sum>(sql`SELECT sum(balance) - sum(unposted) AS amount FROM balances`);
  return BigInt(sum?.amount ?? 0);
}

/** What an account was given as credit, less what was taken back of that. */
export function sumGrants(db: Db, accountId: string): Micros {
  const [sum] = db.all<Pick<Sum, "amount">>(sql`
    SELECT -sum(amount) AS amount FROM journal_entries JOIN postings USING (entry_id)
    WHERE account_id = ${accountId} AND ledger_account = 'grants'`);
  return BigInt(sum?.amount ?? 0);
}

/**
 * Returns a function that gives the ledger's revenue at each call, without ever summing millions of usage postings: all
 * postings sum to zero, so the first call derives revenue from the other ledger accounts (customers' by their cached
 * balances), and later calls add what is new.
 */
export function createRevenue(db: Db): () => Micros {
  let known: { amount: Micros; upTo: number } | undefined;

  const initial = () => sql`
    SELECT max(entry_id) AS upTo, -coalesce((SELECT sum(balance) FROM balances), 0) - coalesce((
      SELECT sum(amount) FROM postings INDEXED BY postings_by_ledger_account WHERE ledger_account < 'customer:'
    ), 0) - coalesce((
      SELECT sum(amount) FROM postings INDEXED BY postings_by_ledger_account
      WHERE ledger_account >= 'customer;' AND ledger_account < 'revenue'
    ), 0) - coalesce((
      SELECT sum(amount) FROM postings INDEXED BY postings_by_ledger_account WHERE ledger_account > 'revenue'
    ), 0) AS amount
    FROM journal_entries`;
  const since = (upTo: number) => sql`
    SELECT max(entry_id) AS upTo, sum(amount) AS amount FROM postings INDEXED BY postings_by_ledger_account
    WHERE ledger_account = 'revenue' AND entry_id > ${upTo}`;

  return () => {
    const [sum] = db.all<Sum>(known ? since(known.upTo) : initial());
    const amount = (known?.amount ?? 0n) + BigInt(sum?.amount ?? 0);
    known = { amount, upTo: sum?.upTo ?? known?.upTo ?? 0 };
    return amount;
  };
}
