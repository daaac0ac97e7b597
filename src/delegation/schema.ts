import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const delegations = sqliteTable("delegations", {
  runId: text("run_id").primaryKey(),
  conversationId: text("conversation_id").notNull(),
  accountId: text("account_id").notNull(),
  parentRunId: text("parent_run_id").notNull(),
  /** Where the chain of such runs began. */
  rootRunId: text("root_run_id").notNull(),
  /** What the parent's call waits for, and the place in that call. */
  waitId: text("wait_id").notNull(),
  position: integer("position").notNull(),
  /** Of a copy; null for another agent. */
  title: text("title"),
  /** The only tools of a copy; null for another agent. */
  tools: text("tools", { mode: "json" }).$type<string[]>(),
  mayAsk: integer("may_ask", { mode: "boolean" }).notNull(),
  isOpen: integer("is_open", { mode: "boolean" }).notNull(),
  expiresAt: integer("expires_at").notNull(),
});

/** A run that another one has caused and waits for. */
export type DelegationRow = typeof delegations.$inferSelect;
