import { and, asc, eq, isNull, lte, ne, or, type SQL, sql } from "drizzle-orm";
import { agents } from "../agents/schema.ts";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { type DelegationRow, delegations } from "./schema.ts";

/** The prepared queries of runs that other runs wait for. */
export function delegationQueries(db: Db) {
  const p = sql.placeholder;
  const { runId, parentRunId, rootRunId, accountId, waitId, position, expiresAt } = delegations;
  // Written exactly as in the partial indexes' conditions, or SQLite would not use them.
  const isOpen = sql`${delegations.isOpen} = 1`;
  const select = (which: SQL | undefined) => db.select().from(delegations).where(which);
  /** Counts no further than to `most`. */
  const counting = (which: SQL | undefined) => db.select({ runId }).from(delegations).where(which).limit(p("most"));
  const byRun = prepared(db, () => select(eq(runId, p("runId"))));
  const byParent = prepared(db, () => select(and(eq(parentRunId, p("runId")), isOpen)));
  const byWait = prepared(db, () => select(eq(waitId, p("waitId"))).orderBy(asc(position)));
  const due = prepared(db, () => select(and(lte(expiresAt, p("now")), isOpen)).limit(p("limit")));
  const ofParent = prepared(db, () => counting(eq(parentRunId, p("id"))));
  const ofRoot = prepared(db, () => counting(eq(rootRunId, p("id"))));
  const ofAccount = prepared(db, () => counting(and(eq(accountId, p("id")), isOpen)));
  const close = prepared(db, () =>
    db
      .update(delegations)
      .set({ isOpen: false })
      .where(eq(runId, p("runId"))),
  );
  const ofInstance = and(eq(agents.instanceId, p("instanceId")), isNull(agents.removedAt));
  const named = prepared(db, () =>
    db
      .select({ agentId: agents.agentId })
      .from(agents)
      .where(and(ofInstance, or(eq(agents.slug, p("name")), sql`${agents.displayName} = ${p("name")} COLLATE NOCASE`)))
      .limit(p("limit")),
  );
  const others = prepared(db, () =>
    db
      .select({ name: agents.displayName })
      .from(agents)
      .where(and(ofInstance, ne(agents.agentId, p("agentId"))))
      .orderBy(asc(agents.agentId))
      .limit(p("limit")),
  );

  return {
    insert: (row: DelegationRow) => void db.insert(delegations).values(row).run(),
    find: (runId: string): DelegationRow | undefined => byRun.get({ runId }),
    close: (runId: string) => void close.run({ runId }),
    /** Those that this run still waits for. */
    openOf: (runId: string): DelegationRow[] => byParent.all({ runId }),
    /** All that one call waits, or waited, for, in its order. */
    ofWait: (waitId: string): DelegationRow[] => byWait.all({ waitId }),
    /** Open ones whose time is over. */
    due: (now: number, limit: number): DelegationRow[] => due.all({ now, limit }),
    /** How many a run, all runs of a chain, or an account (open ones) has; counted no further than to `most`. */
    countOfParent: (id: string, most: number): number => ofParent.all({ id, most }).length,
    countOfRoot: (id: string, most: number): number => ofRoot.all({ id, most }).length,
    countOpenOf: (id: string, most: number): number => ofAccount.all({ id, most }).length,
    /** The ids of the instance's agents with this slug or, whatever its case, this name. */
    agentsNamed: (instanceId: string, name: string, limit: number): string[] =>
      named.all({ instanceId, name, limit }).map(({ agentId }) => agentId),
    /** The names of the instance's other agents. */
    namesBeside: (instanceId: string, agentId: string, limit: number): string[] =>
      others.all({ instanceId, agentId, limit }).map(({ name }) => name),
  };
}

export type DelegationQueries = ReturnType<typeof delegationQueries>;
