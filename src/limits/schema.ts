import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** The account limits that an operator can change, as `roost account limit` names them. */
export const LIMIT_NAMES = [
  "reads",
  "writes",
  "streams",
  "instances",
  "agents",
  "workspaceBytes",
  "tokensPerDay",
  "tokensPerMonth",
] as const;

export const accountLimits = sqliteTable(
  "account_limits",
  {
    accountId: text("account_id").notNull(),
    name: text("name", { enum: LIMIT_NAMES }).notNull(),
    value: integer("value").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.name] })],
);

/** How much of its quotas an account uses; maintained by triggers. */
export const accountUsage = sqliteTable("account_usage", {
  accountId: text("account_id").primaryKey(),
  instances: integer("instances").notNull(),
  agents: integer("agents").notNull(),
  workspaceBytes: integer("workspace_bytes").notNull(),
  historyBytes: integer("history_bytes").notNull(),
  schedules: integer("schedules").notNull(),
});
