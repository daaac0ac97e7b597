import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { micros } from "../storage/columns.ts";

export const meters = sqliteTable("meters", {
  instanceId: text("instance_id").primaryKey(),
  accountId: text("account_id").notNull(),
  accrued: micros("accrued").notNull(),
  remainder: micros("remainder").notNull(),
  unposted: micros("unposted").notNull(),
  hour: integer("hour").notNull(),
});

export const usageDays = sqliteTable(
  "usage_days",
  {
    accountId: text("account_id").notNull(),
    day: text("day").notNull(),
    instanceId: text("instance_id").notNull(),
    runningNs: integer("running_ns").notNull(),
    cost: micros("cost").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.day, table.instanceId] })],
);

/** The cost of days that are no longer kept. */
export const usageBefore = sqliteTable("usage_before", {
  instanceId: text("instance_id").primaryKey(),
  accountId: text("account_id").notNull(),
  cost: micros("cost").notNull(),
});

export const prices = sqliteTable("prices", {
  since: integer("since").primaryKey(),
  pricePerHour: micros("price_per_hour").notNull(),
});
