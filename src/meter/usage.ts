import { and, between, desc, eq, sql } from "drizzle-orm";
import type { Db } from "../storage/store.ts";
import type { DayUsage } from "./queries.ts";
import { meters, usageBefore, usageDays } from "./schema.ts";

/** UTC calendar days such as `2026-11-21`, both inclusive. */
interface Days {
  from: string;
  to: string;
}

/** The row after which a page starts. */
export type UsageCursor = Pick<DayUsage, "day" | "instanceId">;

type Row = Omit<DayUsage, "runningNs" | "cost"> & { runningNs: number; cost: number | bigint };

const asUsage = ({ runningNs, cost, ...row }: Row): DayUsage => ({
  ...row,
  runningNs: BigInt(runningNs),
  cost: BigInt(cost),
});

/**
 * The usage of an account's instances, newest day first, and within a day newest instance first. Callers add the
 * meter's `unread` usage.
 */
export function readUsage(
  db: Db,
  accountId: string,
  { from, to }: Days,
  after: UsageCursor | null,
  limit: number,
): DayUsage[] {
  const rows = db
    .select()
    .from(usageDays)
    .where(
      and(
        eq(usageDays.accountId, accountId),
        between(usageDays.day, from, to),
        after === null
          ? undefined
          : sql`(${usageDays.day}, ${usageDays.instanceId}) < (${after.day}, ${after.instanceId})`,
      ),
    )
    .orderBy(desc(usageDays.day), desc(usageDays.instanceId))
    .limit(limit)
    .all();
  return rows.map(asUsage);
}

/** The same for one instance. Goes from day to day, without reading the usage of the account's other instances. */
export function readUsageOf(
  db: Db,
  accountId: string,
  instanceId: string,
  { from, to }: Days,
  after: UsageCursor | null,
  limit: number,
): DayUsage[] {
  const rows = db.all<Row>(sql`
    WITH RECURSIVE days (day) AS (
      SELECT max(day) FROM usage_days
      WHERE account_id = ${accountId} AND day <= ${to} AND day < ${after?.day ?? "9999-99-99"}
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

/** Whether the account has or had this instance. */
export function hasOwned(db: Db, accountId: string, instanceId: string): boolean {
  const present = db.select().from(meters).where(eq(meters.instanceId, instanceId)).get();
  if (present) return present.accountId === accountId;
  const before = db.select().from(usageBefore).where(eq(usageBefore.instanceId, instanceId)).get();
  if (before) return before.accountId === accountId;
  return readUsageOf(db, accountId, instanceId, { from: "0000-01-01", to: "9999-12-31" }, null, 1).length > 0;
}
