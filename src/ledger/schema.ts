import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { micros } from "../storage/columns.ts";

export const ENTRY_TYPES = ["top_up", "credit", "usage", "reversal"] as const;

export const journalEntries = sqliteTable("journal_entries", {
  /** In commit order. */
  entryId: integer("entry_id").primaryKey(),
  transactionId: text("transaction_id").notNull(),
  type: text("type", { enum: ENTRY_TYPES }).notNull(),
  accountId: text("account_id").notNull(),
  instanceId: text("instance_id"),
  hour: integer("hour"),
  chainId: integer("chain_id"),
  txHash: text("tx_hash"),
  note: text("note"),
  balanceAfter: micros("balance_after").notNull(),
  createdAt: integer("created_at").notNull(),
});

export const postings = sqliteTable(
  "postings",
  {
    entryId: integer("entry_id").notNull(),
    ledgerAccount: text("ledger_account").notNull(),
    amount: micros("amount").notNull(),
  },
  (table) => [primaryKey({ columns: [table.entryId, table.ledgerAccount] })],
);

export const balances = sqliteTable("balances", {
  accountId: text("account_id").primaryKey(),
  balance: micros("balance").notNull(),
  unposted: micros("unposted").notNull().default(0n),
  owed: micros("owed").notNull().default(0n),
  month: text("month").notNull().default(""),
  spent: micros("spent").notNull().default(0n),
  runwayWarned: integer("runway_warned"),
});

export type AccountBalance = typeof balances.$inferSelect;
