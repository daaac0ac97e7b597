import { createHash } from "node:crypto";
import { asc, desc, gt, gte, lt, lte } from "drizzle-orm";
import { prepared } from "./prepared.ts";
import { type AuditCut, type AuditRow, audit, auditCheckpoints, auditCut, type Checkpoint } from "./schema.ts";
import type { Db } from "./store.ts";

/** The hash before the first row. */
export const GENESIS: Buffer = Buffer.alloc(32);

const hashOf = (before: Buffer, row: Omit<AuditRow, "hash" | "auditId">): Buffer =>
  createHash("sha256")
    .update(before)
    .update(JSON.stringify([row.actor, row.action, row.subject, row.detail, row.createdAt]))
    .digest();

export const follows = (before: Buffer, row: AuditRow): boolean => hashOf(before, row).equals(row.hash);

export function auditQueries(db: Db) {
  const newestRow = prepared(db, () => db.select().from(audit).orderBy(desc(audit.auditId)).limit(1));
  const newestCheckpoint = prepared(db, () =>
    db.select().from(auditCheckpoints).orderBy(desc(auditCheckpoints.auditId)).limit(1),
  );
  return {
    /** Chains the row to the newest one. */
    append(row: Omit<AuditRow, "hash" | "auditId">): void {
      const hash = hashOf(newestRow.get()?.hash ?? GENESIS, row);
      db.insert(audit)
        .values({ ...row, hash })
        .run();
    },
    /** Oldest first, at most `limit` rows after the row `after`. */
    read: (after: number, limit: number): AuditRow[] =>
      db.select().from(audit).where(gt(audit.auditId, after)).orderBy(asc(audit.auditId)).limit(limit).all(),
    newestRow: (): AuditRow | undefined => newestRow.get(),
    /**
     * Removes the rows up to the cut, and the checkpoints before it. Triggers allow this only before the newest
     * checkpoint's own row, oldest first.
     */
    removeUpTo(cut: AuditCut): number {
      const gone = db.delete(audit).where(lte(audit.auditId, cut.auditId)).returning({ auditId: audit.auditId }).all();
      db.delete(auditCheckpoints).where(lt(auditCheckpoints.auditId, cut.auditId)).run();
      db.insert(auditCut)
        .values({ one: 1, ...cut })
        .onConflictDoUpdate({ target: auditCut.one, set: cut })
        .run();
      return gone.length;
    },
    cut: (): AuditCut | undefined => db.select().from(auditCut).get(),
    addCheckpoint: (checkpoint: Checkpoint) => void db.insert(auditCheckpoints).values(checkpoint).run(),
    newestCheckpoint: (): Checkpoint | undefined => newestCheckpoint.get(),
    /** Oldest first, at most `limit`, starting with the row `auditId`. */
    checkpointsFrom: (auditId: number, limit: number): Checkpoint[] =>
      db
        .select()
        .from(auditCheckpoints)
        .where(gte(auditCheckpoints.auditId, auditId))
        .orderBy(asc(auditCheckpoints.auditId))
        .limit(limit)
        .all(),
    /** The newest checkpoint before this row. */
    checkpointBefore: (auditId: number): Checkpoint | undefined =>
      db
        .select()
        .from(auditCheckpoints)
        .where(lt(auditCheckpoints.auditId, auditId))
        .orderBy(desc(auditCheckpoints.auditId))
        .limit(1)
        .get(),
  };
}

export type AuditQueries = ReturnType<typeof auditQueries>;
