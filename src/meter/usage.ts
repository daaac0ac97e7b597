import { and, between, desc, eq, sql } from "drizzle-orm";
import type { Db } from "../storage/store.ts";
import type { DayUsage } from "./queries.ts";
import { meters, usageDays } from "./schema.ts";

/** Calendar days of UTC, inclusive, such as `2026-11-21`. */
export interface Days {
  from: string;
  to: string;
}

/** A row that a page begins behind. */
export type UsagePlace = Pick<DayUsage, "day" | "instanceId">;

type Row = Omit<DayUsage, "runningNs" | "cost"> & { runningNs: number; cost: number | bigint };

const asUsage = ({ runningNs, cost, ...row }: Row): DayUsage => ({
  ...row,
  runningNs: BigInt(runningNs),
  cost: BigInt(cost),
});

/**
 * What an account's instances used, the newest day first and within a day the newest instance. What the meter has not
 * yet written, its `unread`, is to be added.
 */
export function readUsage(
  db: Db,
  accountId: string,
  { from, to }: Days,
  behind: UsagePlace | null,
  limit: number,
): DayUsage[] {
  const rows = db
    .select()
    .from(usageDays)
    .where(
      and(
        eq(usageDays.accountId, accountId),
        between(usageDays.day, from, to),
        behind === null
          ? undefined
          : sql`(${usageDays.day}, ${usageDays.instanceId}) < (${behind.day}, ${behind.instanceId})`,
      ),
    )
    .orderBy(desc(usageDays.day), desc(usageDays.instanceId))
    .limit(limit)
    .all();
  return rows.map(asUsage);
}

/** The same of one instance. Goes from day to day: what the account's other instances used is not read. */
export function readUsageOf(
  db: Db,
  accountId: string,
  instanceId: string,
  { from, to }: Days,
  behind: UsagePlace | null,
  limit: number,
): DayUsage[] {
  const rows = db.all<Row>(sql`
    WITH RECURSIVE days (day) AS (
      SELECT max(day) FROM usage_days
      WHERE account_id = ${accountId} AND day <= ${to} AND day < ${behind?.day ?? "9999-99-99"}
      UNION ALL
      SELECT (SELECT max(day) FROM usage_days WHERE account_id = ${accountId} AND day < days.day)
      FROM days WHERE day > ${from}
    )
    SELECT account_id AS accountId, days.day, instance_id AS instanceId, running_ns AS runningNs, cost
    FROM days CROSS JOIN usage_days AS used
    WHERE account_id = ${accountId} AND used.day = days.day AND instance_id = ${instanceId} AND used.day >= ${from}
    ORDER BY days.day DESC LIMIT ${limit}`);
  return rows.map(asUsage);
}

/** Whether the account has this instance, or had it. */
export function hasHad(db: Db, accountId: string, instanceId: string): boolean {
  const present = db.select().from(meters).where(eq(meters.instanceId, instanceId)).get();
  if (present) return present.accountId === accountId;
  return readUsageOf(db, accountId, instanceId, { from: "0000-01-01", to: "9999-12-31" }, null, 1).length > 0;
}
