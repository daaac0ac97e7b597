import { createHash } from "node:crypto";
import { asc, desc, gt } from "drizzle-orm";
import { blob, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Clock } from "../lib/clock.ts";
import { lazily } from "../lib/lazily.ts";
import type { Store } from "./store.ts";

const audit = sqliteTable("audit", {
  auditId: integer("audit_id").primaryKey({ autoIncrement: true }),
  actor: text("actor").notNull(),
  action: text("action").notNull(),
  subject: text("subject").notNull(),
  detail: text("detail").notNull(),
  createdAt: integer("created_at").notNull(),
  hash: blob("hash", { mode: "buffer" }).notNull(),
});

export type AuditRow = typeof audit.$inferSelect;

export interface AuditEntry {
  /** An account id, or `operator` for the command line, or `host`. */
  actor: string;
  /** What was done, such as `key.create`. */
  action: string;
  /** The id of what it was done to. */
  subject: string;
  detail?: Record<string, string | number | boolean | null>;
}

export interface Audit {
  /** Appends in the transaction that is open, so that what is done and what is told of it stand or fall together. */
  append(entry: AuditEntry): void;
  /** Oldest first, `limit` rows behind `after`. */
  read(after: number, limit: number): AuditRow[];
  /** The first row whose hash does not follow from the one before it; null where the chain holds. */
  findBreak(): number | null;
}

const hashOf = (before: Buffer, row: Omit<AuditRow, "hash" | "auditId">): Buffer =>
  createHash("sha256")
    .update(before)
    .update(JSON.stringify([row.actor, row.action, row.subject, row.detail, row.createdAt]))
    .digest();

const GENESIS = Buffer.alloc(32);

/** The append-only, hash-chained log of what touches credentials, secrets and money (security.md). */
export function createAudit(store: Store, clock: Clock): Audit {
  const latest = lazily(() =>
    store.db.select({ hash: audit.hash }).from(audit).orderBy(desc(audit.auditId)).limit(1).prepare(),
  );
  const read = (after: number, limit: number) =>
    store.db.select().from(audit).where(gt(audit.auditId, after)).orderBy(asc(audit.auditId)).limit(limit).all();
  return {
    append({ actor, action, subject, detail = {} }) {
      store.transaction(() => {
        const row = { actor, action, subject, detail: JSON.stringify(detail), createdAt: clock.now() };
        const hash = hashOf(latest().get()?.hash ?? GENESIS, row);
        store.db
          .insert(audit)
          .values({ ...row, hash })
          .run();
      });
    },
    read,
    findBreak() {
      let before: Buffer = GENESIS;
      for (let after = 0; ; ) {
        const rows = read(after, 1000);
        for (const row of rows) {
          if (!hashOf(before, row).equals(row.hash)) return row.auditId;
          before = row.hash;
          after = row.auditId;
        }
        if (rows.length < 1000) return null;
      }
    },
  };
}
