import { sql } from "drizzle-orm";
import type { Micros } from "../lib/money.ts";
import type { Db } from "../storage/store.ts";
import type { ENTRY_TYPES } from "./schema.ts";

/** A line of an account's statement: a ledger entry, or an instance's usage of one hour. */
export interface Transaction {
  transactionId: string;
  type: (typeof ENTRY_TYPES)[number];
  /** The change of the balance; negative for usage and reversals. */
  amount: Micros;
  /** The sum of this line and all older ones. */
  balanceAfter: Micros;
  instanceId: string | null;
  chainId: number | null;
  txHash: string | null;
  createdAt: number;
  /** The page after this line starts here. */
  cursor: StatementCursor;
}

/**
 * A position in a statement. The journal only grows, so paging shows it as it was up to one entry: no line is lost or
 * repeated while an hour's usage still grows and its line moves up.
 */
export interface StatementCursor {
  /** The newest entry in this statement. */
  upTo: number;
  before: number;
  /** The sum of all lines from here on, the older ones. */
  balance: Micros;
}

interface Row {
  entryId: number;
  transactionId: string;
  type: Transaction["type"];
  amount: number | null;
  balanceAfter: number;
  instanceId: string | null;
  chainId: number | null;
  txHash: string | null;
  createdAt: number;
}

/** An account's ledger entries, newest first. An instance's usage in one hour is one line, at its last posting. */
export function readStatement(db: Db, accountId: string, from: StatementCursor | null, limit: number): Transaction[] {
  const upTo = from?.upTo ?? Number.MAX_SAFE_INTEGER;
  const before = from?.before ?? Number.MAX_SAFE_INTEGER;
  const own = `customer:${accountId}`;
  // The indexes are forced, so that a line costs the same whatever the length of the journal.
  const rows = db.all<Row>(sql`
    SELECT entry_id AS entryId, transaction_id AS transactionId, type, balance_after AS balanceAfter,
      instance_id AS instanceId, chain_id AS chainId, tx_hash AS txHash, created_at AS createdAt,
      CASE type WHEN 'usage' THEN (
        SELECT sum(amount)
        FROM journal_entries AS part INDEXED BY usage_by_hour JOIN postings ON postings.entry_id = part.entry_id
        WHERE part.type = 'usage' AND part.account_id = entry.account_id AND part.instance_id = entry.instance_id
          AND part.hour = entry.hour AND part.entry_id <= ${upTo} AND ledger_account = ${own}
      ) ELSE (
        SELECT amount FROM postings WHERE postings.entry_id = entry.entry_id AND ledger_account = ${own}
      ) END AS amount
    FROM journal_entries AS entry INDEXED BY journal_entries_by_account
    WHERE account_id = ${accountId} AND entry_id < ${before} AND (type <> 'usage' OR NOT EXISTS (
      SELECT 1 FROM journal_entries AS later INDEXED BY usage_by_hour
      WHERE later.type = 'usage' AND later.account_id = entry.account_id AND later.instance_id = entry.instance_id
        AND later.hour = entry.hour AND later.entry_id > entry.entry_id AND later.entry_id <= ${upTo}
    ))
    ORDER BY entry_id DESC LIMIT ${limit}`);
  const newest = rows[0];
  if (newest === undefined) return [];
  let balance = from?.balance ?? BigInt(newest.balanceAfter);
  return rows.map(({ entryId, amount, balanceAfter: _, ...line }) => {
    const micros = BigInt(amount ?? 0);
    const balanceAfter = balance;
    balance -= micros;
    const cursor = { upTo: from?.upTo ?? newest.entryId, before: entryId, balance };
    return { ...line, amount: micros, balanceAfter, cursor };
  });
}

export const encodeCursor = ({ upTo, before, balance }: StatementCursor): string => `${upTo}.${before}.${balance}`;

/** Null if the text is not a cursor. */
export function decodeCursor(text: string): StatementCursor | null {
  const match = /^(\d{1,15})\.(\d{1,15})\.(\d{1,16})$/.exec(text);
  return match && { upTo: Number(match[1]), before: Number(match[2]), balance: BigInt(match[3] ?? "") };
}
