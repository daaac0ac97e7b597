import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { micros } from "../storage/columns.ts";

export const journalEntries = sqliteTable("journal_entries", {
  transactionId: text("transaction_id").primaryKey(),
  type: text("type", { enum: ["top_up", "credit", "usage", "reversal"] }).notNull(),
  accountId: text("account_id").notNull(),
  instanceId: text("instance_id"),
  note: text("note"),
  createdAt: integer("created_at").notNull(),
});

export const postings = sqliteTable(
  "postings",
  {
    transactionId: text("transaction_id").notNull(),
    ledgerAccount: text("ledger_account").notNull(),
    amount: micros("amount").notNull(),
  },
  (table) => [primaryKey({ columns: [table.transactionId, table.ledgerAccount] })],
);

export const balances = sqliteTable("balances", {
  accountId: text("account_id").primaryKey(),
  balance: micros("balance").notNull(),
  owed: micros("owed").notNull(),
});

export const invoices = sqliteTable("invoices", {
  invoiceId: text("invoice_id").primaryKey(),
  accountId: text("account_id").notNull(),
  amount: micros("amount").notNull(),
  status: text("status", { enum: ["open", "paid", "expired"] }).notNull(),
  heads: text("heads").notNull().default("{}"),
  createdAt: integer("created_at").notNull(),
  expiresAt: integer("expires_at").notNull(),
  paidAt: integer("paid_at"),
});

export type Invoice = typeof invoices.$inferSelect;
