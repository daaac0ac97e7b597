import { eq, sql } from "drizzle-orm";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import { lazily } from "../lib/lazily.ts";
import type { Micros } from "../lib/money.ts";
import type { Store } from "../storage/store.ts";
import { balances, journalEntries, postings } from "./table.ts";

export type EntryType = "top_up" | "credit" | "usage" | "reversal";

export interface Entry {
  type: EntryType;
  accountId: string;
  /** What the customer's balance changes by. */
  amount: Micros;
  /** The other side of the entry, such as `grants` or `revenue`. */
  against: string;
  instanceId?: string;
  note?: string;
}

export interface Ledger {
  /** Gives a new account its balance, with an opening credit where there is one. */
  open(accountId: string, credit: Micros, note: string): void;
  /** Posts both sides and moves the cached balance, in one transaction. Throws when the balance would go below zero. */
  post(entry: Entry): { transactionId: string };
  balanceOf(accountId: string): Micros;
}

/** Double entry in micro-USDC: every entry's postings sum to zero, nothing is ever updated (billing.md). */
export function createLedger(store: Store, clock: Clock): Ledger {
  const { db } = store;
  const balance = lazily(() =>
    db
      .select({ balance: balances.balance })
      .from(balances)
      .where(eq(balances.accountId, sql.placeholder("accountId")))
      .prepare(),
  );

  function post({ type, accountId, amount, against, instanceId, note }: Entry): { transactionId: string } {
    const transactionId = newId("txn");
    store.transaction(() => {
      db.insert(journalEntries)
        .values({ transactionId, type, accountId, instanceId, note, createdAt: clock.now() })
        .run();
      db.insert(postings)
        .values([
          { transactionId, ledgerAccount: `customer:${accountId}`, amount },
          { transactionId, ledgerAccount: against, amount: -amount },
        ])
        .run();
      const moved = db
        .update(balances)
        .set({ balance: sql`${balances.balance} + ${Number(amount)}` })
        .where(eq(balances.accountId, accountId))
        .returning({ accountId: balances.accountId })
        .get();
      if (!moved) throw new Error(`the account ${accountId} has no balance to post to`);
    });
    return { transactionId };
  }

  return {
    open(accountId, credit, note) {
      store.transaction(() => {
        db.insert(balances).values({ accountId, balance: 0n, owed: 0n }).run();
        if (credit > 0n) post({ type: "credit", accountId, amount: credit, against: "grants", note });
      });
    },
    post,
    balanceOf: (accountId) => balance().get({ accountId })?.balance ?? 0n,
  };
}
