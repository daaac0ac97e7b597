import { and, asc, between, eq, gt, gte, lt, sql } from "drizzle-orm";
import { placeholdersOf } from "../storage/columns.ts";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import {
  type DayTotals,
  modelCalls,
  modelReservations,
  modelUsage,
  modelUsageMark,
  type Reservation,
  type StoredCall,
  type UsageKind,
} from "./schema.ts";

/** What a limit counts. The cost is in millionths of a US dollar. */
export interface Spent {
  tokens: number;
  cost: number;
}

/** UTC days such as `2026-11-21`, both inclusive, and the same as milliseconds: up to, without `until`. */
export interface Period {
  first: string;
  last: string;
  from: number;
  until: number;
}

export type UsageQueries = ReturnType<typeof usageQueries>;

/** The prepared queries of model usage. */
export function usageQueries(db: Db) {
  const p = sql.placeholder;
  const insertCall = prepared(db, () => db.insert(modelCalls).values(placeholdersOf(CALL)));
  const insertReservation = prepared(db, () =>
    db
      .insert(modelReservations)
      .values(placeholdersOf(RESERVATION))
      .returning({ reservationId: modelReservations.reservationId }),
  );
  const deleteReservation = prepared(db, () =>
    db.delete(modelReservations).where(eq(modelReservations.reservationId, p("reservationId"))),
  );
  const mark = sql`(SELECT call_seq FROM model_usage_mark)`;
  const notTotalled = prepared(db, () =>
    db.select().from(modelCalls).where(gt(modelCalls.callSeq, mark)).orderBy(asc(modelCalls.callSeq)).limit(p("limit")),
  );
  const setMark = prepared(db, () => db.update(modelUsageMark).set(placeholdersOf(["callSeq"])));
  const plus = (name: string) => sql.raw(`min(${name} + excluded.${name}, ${MOST})`);
  const addTotals = prepared(db, () =>
    db
      .insert(modelUsage)
      .values(placeholdersOf([...KEY, ...TOTALS]))
      .onConflictDoUpdate({
        target: KEY.map((name) => modelUsage[name]),
        set: {
          runs: plus("runs"),
          modelCalls: plus("model_calls"),
          promptTokens: plus("prompt_tokens"),
          cachedTokens: plus("cached_tokens"),
          completionTokens: plus("completion_tokens"),
          cost: sql.raw(
            `CASE WHEN excluded.cost IS NULL THEN cost ELSE min(coalesce(cost, 0) + excluded.cost, ${MOST}) END`,
          ),
        },
      }),
  );

  const sums = {
    tokens: boundedTotal("prompt_tokens + completion_tokens"),
    cost: boundedTotal("cost"),
  };
  const totalled = prepared(db, () =>
    db
      .select(sums)
      .from(modelUsage)
      .where(
        and(
          eq(modelUsage.accountId, p("accountId")),
          eq(modelUsage.kind, p("kind")),
          eq(modelUsage.name, p("name")),
          between(modelUsage.day, p("first"), p("last")),
        ),
      ),
  );
  const later = (only: ReturnType<typeof sql>) =>
    prepared(db, () =>
      db
        .select(sums)
        .from(modelCalls)
        .where(
          and(
            gt(modelCalls.callSeq, mark),
            eq(modelCalls.accountId, p("accountId")),
            only,
            gte(modelCalls.createdAt, p("from")),
            lt(modelCalls.createdAt, p("until")),
          ),
        ),
    );
  const laterOf: Record<Exclude<UsageKind, "model">, ReturnType<typeof later>> = {
    day: later(sql`TRUE`),
    host: later(sql`of_host = 1`),
    instance: later(sql`instance_id = ${p("name")}`),
    agent: later(sql`agent_id = ${p("name")}`),
  };

  const ofDays = and(
    eq(modelUsage.accountId, p("accountId")),
    eq(modelUsage.kind, p("kind")),
    between(modelUsage.day, p("from"), p("to")),
  );
  const days = prepared(db, () =>
    db
      .select()
      .from(modelUsage)
      .where(and(ofDays, eq(modelUsage.name, ""), lt(modelUsage.day, p("before"))))
      .orderBy(sql`${modelUsage.day} DESC`)
      .limit(p("limit")),
  );
  const nameBefore = prepared(db, () =>
    db
      .select({ name: sql<string | null>`max(${modelUsage.name})` })
      .from(modelUsage)
      .where(
        and(eq(modelUsage.accountId, p("accountId")), eq(modelUsage.kind, p("kind")), lt(modelUsage.name, p("before"))),
      ),
  );
  const sumOf = prepared(db, () =>
    db
      .select({
        runs: sql<number>`sum(runs)`,
        modelCalls: sql<number | null>`sum(model_calls)`,
        promptTokens: boundedTotal("prompt_tokens"),
        cachedTokens: boundedTotal("cached_tokens"),
        completionTokens: boundedTotal("completion_tokens"),
        cost: sql<number | null>`CASE WHEN count(cost) > 0 THEN ${boundedTotal("cost")} END`,
      })
      .from(modelUsage)
      .where(and(ofDays, eq(modelUsage.name, p("name")))),
  );

  const addToRun = db.$client.query<never, [number, number, number, number | null, string | null]>(
    `UPDATE runs SET prompt_tokens = min(prompt_tokens + ?1, ${MOST}),
       completion_tokens = min(completion_tokens + ?2, ${MOST}),
       cached_tokens = min(coalesce(cached_tokens, 0) + ?3, ${MOST}),
       cost = CASE WHEN ?4 IS NULL THEN cost ELSE min(coalesce(cost, 0) + ?4, ${MOST}) END WHERE run_id = ?5`,
  );
  const unfinished = db.$client.query<{ run_id: string }, [string]>(
    "SELECT run_id FROM runs WHERE run_id = ? AND status IN ('queued', 'running', 'waiting')",
  );
  const warnOnce = db.$client.query<never, [string, string, string, string]>(
    "INSERT OR IGNORE INTO budget_warnings (scope, owner_id, name, period) VALUES (?, ?, ?, ?)",
  );

  return {
    insertCall: (call: StoredCall) => void insertCall.run(call),
    /** Returns its id. */
    reserve(reservation: Reservation): number {
      const inserted = insertReservation.get(reservation);
      if (inserted === undefined) throw new TypeError("the reservation was not written");
      return inserted.reservationId;
    },
    settle: (reservationId: number) => void deleteReservation.run({ reservationId }),
    /** The runs that this one's message has caused, at most 64, with the tokens that they took so far. */
    runsCausedBy: (rootRunId: string) =>
      db.$client
        .query<{ runId: string; tokens: number }, [string]>(
          `SELECT run_id AS runId, coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0) AS tokens
           FROM delegations JOIN runs USING (run_id) WHERE root_run_id = ?`,
        )
        .all(rootRunId),
    /** Adds a call to what its run took, for one that the run itself can no longer add. */
    addToRun({ runId, promptTokens, completionTokens, cachedTokens, cost }: Omit<StoredCall, "runs">): void {
      addToRun.run(promptTokens, completionTokens, cachedTokens, cost, runId);
    },
    isUnfinished: (runId: string): boolean => unfinished.get(runId) !== null,
    reservations: () => db.select().from(modelReservations).all(),
    /** Calls that are not part of the totals yet, oldest first. */
    notTotalled: (limit: number) => notTotalled.all({ limit }),
    setMark: (callSeq: number) => void setMark.run({ callSeq }),
    addTotals: (totals: DayTotals) => void addTotals.run({ ...totals }),
    /** What was spent in a period, as far as it is written. */
    spent(accountId: string, kind: Exclude<UsageKind, "model">, name: string, period: Period): Spent {
      const asked = { accountId, kind, name, ...period };
      const [before, after] = [totalled.get(asked) ?? NOTHING, laterOf[kind].get(asked) ?? NOTHING];
      return { tokens: before.tokens + after.tokens, cost: before.cost + after.cost };
    },
    /** Newest first. */
    days: (accountId: string, from: string, to: string, before: string, limit: number): DayTotals[] =>
      days.all({ accountId, kind: "day", from, to, before, limit }),
    /** The last of the names of a kind before this one. */
    nameBefore: (accountId: string, kind: UsageKind, before: string): string | null =>
      nameBefore.get({ accountId, kind, before })?.name ?? null,
    /** The totals of these days; null without any. */
    sumOf(accountId: string, kind: UsageKind, name: string, from: string, to: string): Totals | null {
      const sum = sumOf.get({ accountId, kind, name, from, to });
      return sum === undefined || sum.modelCalls === null ? null : { ...sum, modelCalls: sum.modelCalls };
    },
    /** Whether this is the first time for this limit in this period. */
    warnOnce: (scope: string, ownerId: string, name: string, period: string): boolean =>
      warnOnce.run(scope, ownerId, name, period).changes > 0,
  };
}

/** Sums stop here, as `boundedSum` does: beyond it SQLite makes them REAL, which no INTEGER column takes. */
const MOST = Number.MAX_SAFE_INTEGER;
const boundedTotal = (figure: string) => sql<number>`min(total(${sql.raw(figure)}), ${sql.raw(String(MOST))})`;

const NOTHING: Spent = { tokens: 0, cost: 0 };

export type Totals = Pick<DayTotals, (typeof TOTALS)[number]>;

const TOTALS = ["runs", "modelCalls", "promptTokens", "cachedTokens", "completionTokens", "cost"] as const;
const KEY = ["accountId", "kind", "name", "day"] as const;
const WHOSE = ["accountId", "instanceId", "agentId", "runId", "model", "purpose", "ofHost"] as const;
const RESERVATION = [...WHOSE, "promptTokens", "completionTokens", "cost", "createdAt"] as const;
const CALL = [...RESERVATION, "outcome", "runs", "cachedTokens", "estimated"] as const;
