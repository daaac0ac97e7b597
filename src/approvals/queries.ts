import { and, asc, count, desc, eq, lt, lte, type SQL, sql } from "drizzle-orm";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { type Approval, approvals } from "./schema.ts";
import type { ApprovalStatus } from "./status.ts";

/** What a list of approvals is limited to; null: not by this. */
export interface ApprovalFilter {
  status: ApprovalStatus | null;
  instanceId: string | null;
}

/** Before all others: no id is greater. */
const NEWEST = "appr_g";

export function approvalQueries(db: Db) {
  const p = sql.placeholder;
  /** What belongs to something that was deleted or cleared is there until its rows are cleared away, and seen by nobody. */
  const isSeen = sql`EXISTS (SELECT 1 FROM conversations AS c
    JOIN agents AS a ON a.agent_id = c.agent_id JOIN instances AS i ON i.instance_id = a.instance_id
    WHERE c.conversation_id = ${approvals.conversationId} AND c.state = 'open'
      AND c.cleared_event_id < ${approvals.firstEventId} AND a.removed_at IS NULL AND i.removed_at IS NULL)`;
  const isOpen = sql`${approvals.status} = 'open'`;
  const select = (which: SQL | undefined) => db.select().from(approvals).where(which);
  const found = prepared(db, () => select(eq(approvals.approvalId, p("approvalId"))));
  const seen = prepared(db, () =>
    select(and(eq(approvals.approvalId, p("approvalId")), eq(approvals.accountId, p("accountId")), isSeen)),
  );
  const page = prepared(db, () =>
    select(
      and(
        eq(approvals.accountId, p("accountId")),
        lt(approvals.approvalId, p("before")),
        sql`(${p("status")} IS NULL OR ${approvals.status} = ${p("status")})`,
        sql`(${p("instanceId")} IS NULL OR ${approvals.instanceId} = ${p("instanceId")})`,
        isSeen,
      ),
    )
      .orderBy(desc(approvals.approvalId))
      .limit(p("limit")),
  );
  const openOf = prepared(db, () =>
    select(and(eq(approvals.runId, p("runId")), isOpen)).orderBy(asc(approvals.approvalId)),
  );
  const openOfAccount = prepared(db, () =>
    db
      .select({ accountId: approvals.accountId })
      .from(approvals)
      .where(and(eq(approvals.accountId, p("accountId")), isOpen))
      .limit(p("most")),
  );
  const due = prepared(db, () =>
    select(and(lte(approvals.expiresAt, p("now")), isOpen))
      .orderBy(asc(approvals.expiresAt))
      .limit(p("limit")),
  );

  return {
    insert: (row: Approval) => void db.insert(approvals).values(row).run(),
    find: (approvalId: string): Approval | undefined => found.get({ approvalId }),
    /** One of the account that is to be seen. */
    seen: (accountId: string, approvalId: string): Approval | undefined => seen.get({ accountId, approvalId }),
    /** Newest first, before this one. */
    page: (accountId: string, filter: ApprovalFilter, before: string | null, limit: number): Approval[] =>
      page.all({ accountId, ...filter, before: before ?? NEWEST, limit }),
    openOf: (runId: string): Approval[] => openOf.all({ runId }),
    /** Open ones whose time is over. */
    due: (now: number, limit: number): Approval[] => due.all({ now, limit }),
    close(approvalId: string, change: Pick<Approval, "status" | "answers" | "note" | "decidedBy" | "decidedAt">): void {
      db.update(approvals).set(change).where(eq(approvals.approvalId, approvalId)).run();
    },
    /** Removes a few of the account's decided ones beyond its newest `max`; not of a run that may still go on with them. */
    prune(accountId: string, max: number): void {
      db.delete(approvals)
        .where(
          sql`${approvals.approvalId} IN (SELECT approval_id FROM approvals WHERE account_id = ${accountId}
            AND status <> 'open' ORDER BY approval_id DESC LIMIT ${PRUNED_AT_ONCE} OFFSET ${max})
            AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = approvals.run_id
              AND (runs.status = 'queued' OR runs.status = 'running' OR runs.status = 'waiting'))`,
        )
        .run();
    },
    /** Counts no further than to `most`. */
    countOpenOf: (accountId: string, most: number): number => openOfAccount.all({ accountId, most }).length,
    countOpen: (): number => db.select({ open: count() }).from(approvals).where(isOpen).get()?.open ?? 0,
  };
}

/** More than are added at once. */
const PRUNED_AT_ONCE = 32;
