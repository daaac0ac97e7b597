import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { micros } from "../storage/columns.ts";

export const ENTRY_TYPES = ["top_up", "credit", "usage", "reversal"] as const;

export const journalEntries = sqliteTable("journal_entries", {
  /** In the order of the commits. */
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

export const meters = sqliteTable("meters", {
  instanceId: text("instance_id").primaryKey(),
  accountId: text("account_id").notNull(),
  accrued: micros("accrued").notNull(),
  remainder: micros("remainder").notNull(),
  unposted: micros("unposted").notNull(),
  hour: integer("hour").notNull(),
});

export const usageDays = sqliteTable(
  "usage_days",
  {
    accountId: text("account_id").notNull(),
    day: text("day").notNull(),
    instanceId: text("instance_id").notNull(),
    runningNs: integer("running_ns").notNull(),
    cost: micros("cost").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.day, table.instanceId] })],
);

export const prices = sqliteTable("prices", {
  since: integer("since").primaryKey(),
  pricePerHour: micros("price_per_hour").notNull(),
});

export const invoices = sqliteTable("invoices", {
  invoiceId: text("invoice_id").primaryKey(),
  accountId: text("account_id").notNull(),
  amount: micros("amount").notNull(),
  status: text("status", { enum: ["open", "paid", "expired"] }).notNull(),
  heads: text("heads").notNull().default("{}"),
  /** Where it is to be paid to; "" until the first start that notes addresses. */
  payTo: text("pay_to").notNull().default(""),
  createdAt: integer("created_at").notNull(),
  expiresAt: integer("expires_at").notNull(),
  paidAt: integer("paid_at"),
});

export const payments = sqliteTable("payments", {
  paymentId: integer("payment_id").primaryKey(),
  chainId: integer("chain_id").notNull(),
  txHash: text("tx_hash").notNull(),
  logIndex: integer("log_index").notNull(),
  blockNumber: integer("block_number").notNull(),
  blockHash: text("block_hash").notNull(),
  payer: text("payer").notNull(),
  amount: micros("amount").notNull(),
  invoiceId: text("invoice_id"),
  accountId: text("account_id").notNull(),
  transactionId: text("transaction_id").notNull(),
  status: text("status", { enum: ["credited", "final", "reversed"] }).notNull(),
  told: integer("told", { mode: "boolean" }).notNull().default(false),
  createdAt: integer("created_at").notNull(),
});

export const claims = sqliteTable(
  "claims",
  {
    chainId: integer("chain_id").notNull(),
    txHash: text("tx_hash").notNull(),
    accountId: text("account_id").notNull(),
    payer: text("payer"),
    amount: micros("amount"),
    status: text("status", { enum: ["pending", "credited", "refused", "expired"] }).notNull(),
    reason: text("reason"),
    tries: integer("tries").notNull().default(0),
    nextTryAt: integer("next_try_at").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.chainId, table.txHash] })],
);

export type Books = typeof balances.$inferSelect;
export type Invoice = typeof invoices.$inferSelect;
export type Payment = typeof payments.$inferSelect;
export type Claim = typeof claims.$inferSelect;
