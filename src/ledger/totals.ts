import { sql } from "drizzle-orm";
import type { Micros } from "../lib/money.ts";
import type { Db } from "../storage/store.ts";

interface Sum {
  amount: number | null;
  upTo: number | null;
}

/** What all customers have together, as it was last committed. */
export function sumBalances(db: Db): Micros {
  const [sum] = db.all<Sum>(sql`SELECT sum(balance) - sum(unposted) AS amount FROM balances`);
  return BigInt(sum?.amount ?? 0);
}

/**
 * Gives the revenue that is in the ledger, each time as it is then. Usage is millions of postings, which are never summed:
 * all postings sum to zero, so at first revenue is what all the others lack of it, customers' by their cached balances;
 * from then on what came after is added.
 */
export function createRevenue(db: Db): () => Micros {
  let known: { amount: Micros; upTo: number } | undefined;

  const atFirst = () => sql`
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
    const [sum] = db.all<Sum>(known ? since(known.upTo) : atFirst());
    const amount = (known?.amount ?? 0n) + BigInt(sum?.amount ?? 0);
    known = { amount, upTo: sum?.upTo ?? known?.upTo ?? 0 };
    return amount;
  };
}
