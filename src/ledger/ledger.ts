import { eq, sql } from "drizzle-orm";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import { CURRENCY, formatMoney, type Micros } from "../lib/money.ts";
import { prepared } from "../storage/prepared.ts";
import type { Store } from "../storage/store.ts";
import { type AccountBalance, balances, type ENTRY_TYPES, journalEntries, postings } from "./schema.ts";

export type EntryType = (typeof ENTRY_TYPES)[number];

export interface Side {
  ledgerAccount: string;
  amount: Micros;
}

export interface Entry {
  type: EntryType;
  accountId: string;
  /** The change of the customer's balance; 0 if the entry is only on other ledger accounts. */
  amount: Micros;
  /** The ledger account of the other side, such as `grants` or `revenue`; or all other sides, if there are several. */
  against: string | readonly Side[];
  /** For usage: the instance, and the hour since 1970. */
  usage?: { instanceId: string; hour: number };
  /** For a top-up or its reversal: the transfer. */
  transfer?: { chainId: number; txHash: string };
  note?: string;
}

export interface Ledger {
  /** Creates a new account's balance, with an opening credit if `credit` is above 0. */
  open(accountId: string, credit: Micros, note: string): void;
  /**
   * Posts every side and updates the cached balance, in one transaction. Throws if the sides do not sum to zero, if the
   * balance would fall below what the meter has already charged, or if a credit exceeds what an account may hold.
   */
  post(entry: Entry): { transactionId: string };
  /** Throws for an account that was never opened. */
  accountBalance(accountId: string): AccountBalance;
}

/** Well below 2^53, up to which the database's driver is exact; payments may exceed it. */
const MAX_CREDITED: Micros = 999_999_999_999_999n;

/**
 * Double entry in micro-USDC: every entry's postings sum to zero, and none is ever updated (docs/contract/billing.md,
 * Ledger).
 */
export function createLedger(store: Store, clock: Clock): Ledger {
  const { db } = store;
  const p = sql.placeholder;
  const byAccount = prepared(db, () =>
    db
      .select()
      .from(balances)
      .where(eq(balances.accountId, p("accountId"))),
  );
  const move = prepared(db, () =>
    db
      .update(balances)
      .set({ balance: sql`${balances.balance} + ${p("amount")}` })
      .where(eq(balances.accountId, p("accountId")))
      .returning({ balance: balances.balance }),
  );
  const insertEntry = prepared(db, () =>
    db
      .insert(journalEntries)
      .values({
        transactionId: p("transactionId"),
        type: p("type"),
        accountId: p("accountId"),
        instanceId: p("instanceId"),
        hour: p("hour"),
        chainId: p("chainId"),
        txHash: p("txHash"),
        note: p("note"),
        balanceAfter: p("balanceAfter"),
        createdAt: p("createdAt"),
      })
      .returning({ entryId: journalEntries.entryId }),
  );
  const insertPosting = prepared(db, () =>
    db.insert(postings).values({ entryId: p("entryId"), ledgerAccount: p("ledgerAccount"), amount: p("amount") }),
  );

  function post({ type, accountId, amount, against, usage, transfer, note }: Entry): { transactionId: string } {
    const others = typeof against === "string" ? [{ ledgerAccount: against, amount: -amount }] : against;
    const sides = [{ ledgerAccount: `customer:${accountId}`, amount }, ...others].filter((side) => side.amount !== 0n);
    const sum = sides.reduce((total, side) => total + side.amount, 0n);
    if (sum !== 0n || sides.length < 2) throw new Error(`the sides of a ledger entry must sum to zero, not to ${sum}`);
    const transactionId = newId("txn");
    store.transaction(() => {
      const moved = move.get({ accountId, amount: Number(amount) });
      if (!moved) throw new Error(`the account ${accountId} has no balance to post to`);
      if (type === "credit" && moved.balance > MAX_CREDITED)
        throw new Error(`an account holds at most ${formatMoney(MAX_CREDITED)} ${CURRENCY}`);
      const { entryId } = insertEntry.get({
        transactionId,
        type,
        accountId,
        instanceId: usage?.instanceId ?? null,
        hour: usage?.hour ?? null,
        chainId: transfer?.chainId ?? null,
        txHash: transfer?.txHash ?? null,
        note: note ?? null,
        balanceAfter: moved.balance,
        createdAt: clock.now(),
      });
      for (const side of sides) insertPosting.run({ entryId, ...side });
    });
    return { transactionId };
  }

  return {
    open(accountId, credit, note) {
      store.transaction(() => {
        db.insert(balances).values({ accountId, balance: 0n }).run();
        if (credit > 0n) post({ type: "credit", accountId, amount: credit, against: "grants", note });
      });
    },
    post,
    accountBalance(accountId) {
      const found = byAccount.get({ accountId });
      if (!found) throw new Error(`the account ${accountId} has no balance`);
      return found;
    },
  };
}
