import { and, eq, lt, sql } from "drizzle-orm";
import { blob, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { lazily } from "../lib/lazily.ts";
import type { Db } from "../storage/store.ts";

const idempotentRequests = sqliteTable("idempotent_requests", {
  accountId: text("account_id").notNull(),
  key: text("key").notNull(),
  requestHash: blob("request_hash", { mode: "buffer" }).notNull(),
  status: integer("status").notNull(),
  body: text("body").notNull(),
  runId: text("run_id"),
  createdAt: integer("created_at").notNull(),
});

export type IdempotentRequest = typeof idempotentRequests.$inferSelect;

export function idempotencyTable(db: Db) {
  const p = sql.placeholder;
  const find = lazily(() =>
    db
      .select()
      .from(idempotentRequests)
      .where(and(eq(idempotentRequests.accountId, p("accountId")), eq(idempotentRequests.key, p("key"))))
      .prepare(),
  );
  const prune = lazily(() =>
    db
      .delete(idempotentRequests)
      .where(lt(idempotentRequests.createdAt, p("before")))
      .prepare(),
  );
  return {
    find: (accountId: string, key: string): IdempotentRequest | undefined => find().get({ accountId, key }),
    save: (row: IdempotentRequest) =>
      void db
        .insert(idempotentRequests)
        .values(row)
        .onConflictDoUpdate({ target: [idempotentRequests.accountId, idempotentRequests.key], set: row })
        .run(),
    /** Removes what was stored before this time, in milliseconds. */
    prune: (before: number) => void prune().run({ before }),
  };
}
