import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const agents = sqliteTable("agents", {
  agentId: text("agent_id").primaryKey(),
  instanceId: text("instance_id").notNull(),
  name: text("name").notNull(),
  slug: text("slug").notNull(),
  displayName: text("display_name").notNull(),
  model: text("model"),
  lastEventId: integer("last_event_id").notNull().default(0),
  createdAt: integer("created_at").notNull(),
  updatedAt: integer("updated_at").notNull(),
});

export const workspaceChanges = sqliteTable("workspace_changes", {
  changeId: text("change_id").primaryKey(),
  instanceId: text("instance_id").notNull(),
});

export type Agent = typeof agents.$inferSelect;
