import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Mail of a host without an SMTP server, stored for its operator. */
export const outbox = sqliteTable("outbox", {
  id: integer("id").primaryKey(),
  to: text("to_address").notNull(),
  subject: text("subject").notNull(),
  text: text("text").notNull(),
  /** The sign-in code in the text, so that `roost outbox` can show it alone. */
  code: text("code"),
  createdAt: integer("created_at").notNull(),
});

export type OutboxMail = Omit<typeof outbox.$inferSelect, "id">;
