import { desc, lt } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Mail of a host without SMTP, kept for its operator. */
export const outbox = sqliteTable("outbox", {
  id: integer("id").primaryKey(),
  to: text("to_address").notNull(),
  subject: text("subject").notNull(),
  text: text("text").notNull(),
  /** The sign-in code within, so that a command can show it alone. */
  code: text("code"),
  createdAt: integer("created_at").notNull(),
});

export type OutboxMail = Omit<typeof outbox.$inferSelect, "id">;

export function appendMail(db: BunSQLiteDatabase, mail: OutboxMail): void {
  db.insert(outbox).values(mail).run();
}

/** Newest first. */
export function listMail(db: BunSQLiteDatabase): OutboxMail[] {
  const { to, subject, text, code, createdAt } = outbox;
  return db.select({ to, subject, text, code, createdAt }).from(outbox).orderBy(desc(outbox.id)).all();
}

export function deleteMailBefore(db: BunSQLiteDatabase, time: number): void {
  db.delete(outbox).where(lt(outbox.createdAt, time)).run();
}
