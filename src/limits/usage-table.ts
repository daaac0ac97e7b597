import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** What an account has, against its quotas; the database's triggers keep it. */
export const accountUsage = sqliteTable("account_usage", {
  accountId: text("account_id").primaryKey(),
  instances: integer("instances").notNull(),
  agents: integer("agents").notNull(),
  workspaceBytes: integer("workspace_bytes").notNull(),
  historyBytes: integer("history_bytes").notNull(),
});
