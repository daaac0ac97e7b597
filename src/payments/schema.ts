import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { micros } from "../storage/columns.ts";

export const invoices = sqliteTable("invoices", {
  invoiceId: text("invoice_id").primaryKey(),
  accountId: text("account_id").notNull(),
  amount: micros("amount").notNull(),
  status: text("status", { enum: ["open", "paid", "expired"] }).notNull(),
  heads: text("heads").notNull().default("{}"),
  /** The address to pay; "" if the invoice is from before addresses were recorded. */
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

/** Signed transfers passed to a facilitator. */
export const authorizations = sqliteTable(
  "authorizations",
  {
    chainId: integer("chain_id").notNull(),
    payer: text("payer").notNull(),
    nonce: text("nonce").notNull(),
    accountId: text("account_id").notNull(),
    amount: micros("amount").notNull(),
    head: integer("head").notNull(),
    validBefore: integer("valid_before").notNull(),
    status: text("status", { enum: ["settling", "failed", "credited", "lapsed"] }).notNull(),
    txHash: text("tx_hash"),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.chainId, table.payer, table.nonce] })],
);

export type Invoice = typeof invoices.$inferSelect;
export type PaymentRow = typeof payments.$inferSelect;
export type Claim = typeof claims.$inferSelect;
export type AuthorizationRow = typeof authorizations.$inferSelect;
