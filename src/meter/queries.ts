import { and, between, desc, eq, lte, sql } from "drizzle-orm";
import { balances } from "../ledger/schema.ts";
import { daysOf } from "../lib/calendar.ts";
import type { Micros } from "../lib/money.ts";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import type { Reading } from "./readings.ts";
import { meters, prices, usageDays } from "./schema.ts";

/** An instance's usage of one day, or what a reading adds to it. */
export interface DayUsage {
  accountId: string;
  day: string;
  instanceId: string;
  runningNs: bigint;
  cost: Micros;
}

/** The part of a reading that is stored. */
export type StoredReading = Pick<Reading, "instanceId" | "accountId" | "accrued" | "remainder" | "unposted" | "hour">;
export type MeterQueries = ReturnType<typeof meterQueries>;

/** Prepared once: a pass over a thousand instances runs them a thousand times. */
export function meterQueries(db: Db) {
  const p = sql.placeholder;
  const find = prepared(db, () =>
    db
      .select()
      .from(meters)
      .where(eq(meters.instanceId, p("instanceId"))),
  );
  const write = prepared(db, () =>
    db
      .insert(meters)
      .values({
        instanceId: p("instanceId"),
        accountId: p("accountId"),
        accrued: p("accrued"),
        remainder: p("remainder"),
        unposted: p("unposted"),
        hour: p("hour"),
      })
      .onConflictDoUpdate({
        target: meters.instanceId,
        set: {
          accrued: sql`excluded.accrued`,
          remainder: sql`excluded.remainder`,
          unposted: sql`excluded.unposted`,
          hour: sql`excluded.hour`,
        },
      }),
  );
  const addDay = prepared(db, () =>
    db
      .insert(usageDays)
      .values({
        accountId: p("accountId"),
        day: p("day"),
        instanceId: p("instanceId"),
        runningNs: p("runningNs"),
        cost: p("cost"),
      })
      .onConflictDoUpdate({
        target: [usageDays.accountId, usageDays.day, usageDays.instanceId],
        set: {
          runningNs: sql`${usageDays.runningNs} + excluded.running_ns`,
          cost: sql`${usageDays.cost} + excluded.cost`,
        },
      }),
  );
  const setBalance = prepared(db, () =>
    db
      .update(balances)
      .set({
        unposted: sql`${p("unposted")}`,
        month: sql`${p("month")}`,
        spent: sql`${p("spent")}`,
        runwayWarned: sql`${p("runwayWarned")}`,
      })
      .where(eq(balances.accountId, p("accountId"))),
  );
  const costIn = prepared(db, () =>
    db
      .select({ cost: sql<number>`total(${usageDays.cost})` })
      .from(usageDays)
      .where(and(eq(usageDays.accountId, p("accountId")), between(usageDays.day, p("first"), p("last")))),
  );
  const priceAt = prepared(db, () =>
    db
      .select()
      .from(prices)
      .where(lte(prices.since, p("since")))
      .orderBy(desc(prices.since))
      .limit(1),
  );

  return {
    find: (instanceId: string) => find.get({ instanceId }),
    write({ instanceId, accountId, accrued, remainder, unposted, hour }: StoredReading): void {
      write.run({ instanceId, accountId, accrued, remainder, unposted, hour });
    },
    remove: (instanceId: string) => void db.delete(meters).where(eq(meters.instanceId, instanceId)).run(),
    addDay: ({ runningNs, ...usage }: DayUsage) => void addDay.run({ ...usage, runningNs: Number(runningNs) }),
    setBalance(account: {
      accountId: string;
      unposted: Micros;
      month: string;
      spent: Micros;
      runwayWarned: number | null;
    }): void {
      setBalance.run({ ...account, unposted: Number(account.unposted), spent: Number(account.spent) });
    },
    /** The account's cost in a month, including deleted instances. */
    costIn(accountId: string, month: string): Micros {
      return BigInt(costIn.get({ accountId, ...daysOf(month) })?.cost ?? 0);
    },
    /** Meters with usage that is not in the journal. */
    unposted: () => db.select().from(meters).where(sql`${meters.unposted} > 0`).all(),
    /** Notes that this is the price from `since` on. Rows after it are of a clock that was ahead. */
    notePrice(pricePerHour: Micros, since: number): void {
      if (priceAt.get({ since })?.pricePerHour === pricePerHour) return;
      db.insert(prices)
        .values({ since, pricePerHour })
        .onConflictDoUpdate({ target: prices.since, set: { pricePerHour } })
        .run();
    },
  };
}
