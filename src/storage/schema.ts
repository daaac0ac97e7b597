import { blob, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const audit = sqliteTable("audit", {
  auditId: integer("audit_id").primaryKey({ autoIncrement: true }),
  actor: text("actor").notNull(),
  action: text("action").notNull(),
  subject: text("subject").notNull(),
  detail: text("detail").notNull(),
  createdAt: integer("created_at").notNull(),
  hash: blob("hash", { mode: "buffer" }).notNull(),
});

/** The chain's signed head at some row. */
export const auditCheckpoints = sqliteTable("audit_checkpoints", {
  auditId: integer("audit_id").primaryKey(),
  hash: blob("hash", { mode: "buffer" }).notNull(),
  /** Rows written up to this one, including those removed since. */
  rows: integer("rows").notNull(),
  createdAt: integer("created_at").notNull(),
  signature: blob("signature", { mode: "buffer" }).notNull(),
});

/** Up to where the host has removed rows: one row, or none. */
export const auditCut = sqliteTable("audit_cut", {
  one: integer("one").primaryKey(),
  auditId: integer("audit_id").notNull(),
  createdAt: integer("created_at").notNull(),
  signature: blob("signature", { mode: "buffer" }).notNull(),
});

export type AuditCut = Omit<typeof auditCut.$inferSelect, "one">;
export type AuditRow = typeof audit.$inferSelect;
export type Checkpoint = typeof auditCheckpoints.$inferSelect;
