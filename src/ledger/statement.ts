import { sql } from "drizzle-orm";
import type { Micros } from "../lib/money.ts";
import type { Db } from "../storage/store.ts";
import type { ENTRY_TYPES } from "./schema.ts";

/** A line of an account's statement: a ledger entry, or an instance's usage of one hour. */
export interface Transaction {
  transactionId: string;
  type: (typeof ENTRY_TYPES)[number];
  /** What the balance changed by: usage and reversals take from it. */
  amount: Micros;
  /** The sum of this line and all older ones. */
  balanceAfter: Micros;
  instanceId: string | null;
  chainId: number | null;
  txHash: string | null;
  createdAt: number;
  /** Where the page behind this line begins. */
  place: Place;
}

/**
 * A place in a statement. The journal only grows, so what it held up to one entry stays: whoever pages sees that, with
 * nothing lost or doubled while an hour's usage is still being added to and its line moves up.
 */
export interface Place {
  /** The newest entry that the statement knows. */
  upTo: number;
  before: number;
  /** The sum of all lines from here on. */
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

/** An account's ledger entries, newest first. An hour's usage of an instance is one line, which stands at its last posting. */
export function readStatement(db: Db, accountId: string, from: Place | null, limit: number): Transaction[] {
  const upTo = from?.upTo ?? Number.MAX_SAFE_INTEGER;
  const before = from?.before ?? Number.MAX_SAFE_INTEGER;
  const own = `customer:${accountId}`;
  // Each line is found and summed by an index, whatever the length of the journal: the planner is not to choose.
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
    const place = { upTo: from?.upTo ?? newest.entryId, before: entryId, balance };
    return { ...line, amount: micros, balanceAfter, place };
  });
}

export const placeText = ({ upTo, before, balance }: Place): string => `${upTo}.${before}.${balance}`;

/** Null for text that no place has. */
export function readPlace(text: string): Place | null {
  const match = /^(\d{1,15})\.(\d{1,15})\.(\d{1,16})$/.exec(text);
  return match && { upTo: Number(match[1]), before: Number(match[2]), balance: BigInt(match[3] ?? "") };
}
