import { blob, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const idempotentRequests = sqliteTable("idempotent_requests", {
  accountId: text("account_id").notNull(),
  key: text("key").notNull(),
  /** Numbers an account's rows. */
  place: integer("place").notNull(),
  requestMac: blob("request_mac", { mode: "buffer" }).notNull(),
  status: integer("status").notNull(),
  /** Null for an answer that is too large to store. */
  body: text("body"),
  /** The path parameters of the GET that reads the record again. */
  record: text("record", { mode: "json" }).$type<Record<string, string>>(),
  runId: text("run_id"),
  createdAt: integer("created_at").notNull(),
});

export type IdempotentRequest = typeof idempotentRequests.$inferSelect;
