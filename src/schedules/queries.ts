import { and, asc, count, desc, eq, gt, isNull, lt, lte, or, sql } from "drizzle-orm";
import { accountUsage } from "../limits/schema.ts";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { type Schedule, type Slot, scheduleSlots, schedules } from "./schema.ts";

/** Decided times of a schedule that are kept. */
export const KEPT_SLOTS = 100;

/** The queries of schedules and their times. */
export function scheduleQueries(db: Db) {
  const p = sql.placeholder;
  const { scheduleId, agentId, nextAt } = schedules;
  const byId = prepared(db, () =>
    db
      .select()
      .from(schedules)
      .where(eq(scheduleId, p("scheduleId"))),
  );
  const due = prepared(db, () =>
    db
      .select()
      .from(schedules)
      .where(and(sql`${nextAt} IS NOT NULL`, lte(nextAt, p("now"))))
      .orderBy(asc(nextAt), asc(scheduleId))
      .limit(p("limit")),
  );
  const soonest = prepared(db, () =>
    db.select({ nextAt }).from(schedules).where(sql`${nextAt} IS NOT NULL`).orderBy(asc(nextAt)).limit(1),
  );
  const heartbeat = prepared(db, () =>
    db
      .select()
      .from(schedules)
      .where(and(eq(agentId, p("agentId")), sql`${schedules.kind} = 'heartbeat'`)),
  );
  const slotOfRun = prepared(db, () =>
    db
      .select()
      .from(scheduleSlots)
      .where(eq(scheduleSlots.runId, p("runId"))),
  );
  const decided = prepared(db, () =>
    db
      .select({ slotAt: scheduleSlots.slotAt })
      .from(scheduleSlots)
      .where(and(eq(scheduleSlots.scheduleId, p("scheduleId")), eq(scheduleSlots.slotAt, p("slotAt")))),
  );
  const insertSlot = prepared(db, () =>
    db.insert(scheduleSlots).values({
      ...{ scheduleId: p("scheduleId"), slotAt: p("slotAt") },
      ...{ status: p("status"), reason: p("reason"), runId: p("runId") },
    }),
  );
  const pruneSlots = prepared(db, () =>
    db.delete(scheduleSlots).where(
      and(
        eq(scheduleSlots.scheduleId, p("scheduleId")),
        sql`${scheduleSlots.slotAt} < (SELECT slot_at FROM schedule_slots WHERE schedule_id = ${p("scheduleId")}
          ORDER BY slot_at DESC LIMIT 1 OFFSET ${p("before")})`,
      ),
    ),
  );
  const move = prepared(db, () =>
    db
      .update(schedules)
      .set({ nextAt: sql`${p("nextAt")}`, lastSlot: sql`coalesce(${p("lastSlot")}, ${schedules.lastSlot})` })
      .where(eq(scheduleId, p("scheduleId"))),
  );
  const ofSchedule = (id: string) => eq(scheduleSlots.scheduleId, id);

  return {
    insert: (row: Schedule) => void db.insert(schedules).values(row).run(),
    find: (id: string): Schedule | undefined => byId.get({ scheduleId: id }),
    heartbeatOf: (agent: string): Schedule | undefined => heartbeat.get({ agentId: agent }),
    update: (id: string, change: Partial<Schedule>) =>
      void db.update(schedules).set(change).where(eq(scheduleId, id)).run(),
    /** A trigger removes its times. */
    remove: (id: string) => void db.delete(schedules).where(eq(scheduleId, id)).run(),
    /** Oldest first. */
    page: (agent: string, after: string | null, limit: number): Schedule[] =>
      db
        .select()
        .from(schedules)
        .where(and(eq(agentId, agent), after === null ? undefined : gt(scheduleId, after)))
        .orderBy(asc(scheduleId))
        .limit(limit)
        .all(),
    /** Without its heartbeat. */
    countOfAgent: (agent: string): number =>
      db
        .select({ rows: count() })
        .from(schedules)
        .where(and(eq(agentId, agent), sql`${schedules.kind} = 'schedule'`))
        .get()?.rows ?? 0,
    countOfAccount: (accountId: string): number =>
      db
        .select({ schedules: accountUsage.schedules })
        .from(accountUsage)
        .where(eq(accountUsage.accountId, accountId))
        .get()?.schedules ?? 0,
    /** Those whose time has come, the one that waits longest first. */
    due: (now: number, limit: number): Schedule[] => due.all({ now, limit }),
    /** When the next of all is due; null if none is. */
    soonest: (): number | null => soonest.get()?.nextAt ?? null,
    /** Those planned for later whose last time, start or change lies after `now`: the clock was set back. */
    aheadOf: (now: number, after: string, limit: number): Schedule[] =>
      db
        .select()
        .from(schedules)
        .where(
          and(
            sql`${nextAt} > ${now}`,
            gt(scheduleId, after),
            or(gt(schedules.lastSlot, now), gt(schedules.anchor, now), gt(schedules.updatedAt, now)),
          ),
        )
        .orderBy(asc(scheduleId))
        .limit(limit)
        .all(),
    /** Forgets times after `now` that were missed, and times after `farAhead` that nothing was run for. */
    forgetAhead: (id: string, now: number, farAhead: number) =>
      void db
        .delete(scheduleSlots)
        .where(
          and(
            ofSchedule(id),
            gt(scheduleSlots.slotAt, now),
            or(eq(scheduleSlots.status, "missed"), gt(scheduleSlots.slotAt, farAhead)),
            isNull(scheduleSlots.runId),
          ),
        )
        .run(),
    isDecided: (id: string, slotAt: number): boolean => decided.get({ scheduleId: id, slotAt }) !== undefined,
    /** It is due next at `nextAt`; null for `lastSlot` where no time was decided. */
    move: (id: string, at: Pick<Schedule, "nextAt" | "lastSlot">) => void move.run({ scheduleId: id, ...at }),
    /** The oldest kept one makes room. Throws if this time was decided before. */
    decide(slot: Slot): void {
      insertSlot.run({ ...slot });
      pruneSlots.run({ scheduleId: slot.scheduleId, before: KEPT_SLOTS - 1 });
    },
    slotOfRun: (runId: string): Slot | undefined => slotOfRun.get({ runId }),
    setSlot: ({ scheduleId: id, slotAt }: Slot, change: Pick<Slot, "status" | "reason">) =>
      void db
        .update(scheduleSlots)
        .set(change)
        .where(and(ofSchedule(id), eq(scheduleSlots.slotAt, slotAt)))
        .run(),
    /** Newest first. */
    slots: (id: string, before: number | null, limit: number): Slot[] =>
      db
        .select()
        .from(scheduleSlots)
        .where(and(ofSchedule(id), before === null ? undefined : lt(scheduleSlots.slotAt, before)))
        .orderBy(desc(scheduleSlots.slotAt))
        .limit(limit)
        .all(),
  };
}

export type ScheduleQueries = ReturnType<typeof scheduleQueries>;
