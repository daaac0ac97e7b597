import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { ModelLimits } from "../limits/model-limits.ts";

/**
 * As in the contract. This host uses only `running` and `stopped`: a start or stop takes no time and cannot fail
 * half-way.
 */
export const INSTANCE_STATUSES = ["provisioning", "running", "stopping", "stopped", "starting", "error"] as const;
export type InstanceStatus = (typeof INSTANCE_STATUSES)[number];

export const instances = sqliteTable("instances", {
  instanceId: text("instance_id").primaryKey(),
  accountId: text("account_id").notNull(),
  name: text("name").notNull(),
  status: text("status", { enum: INSTANCE_STATUSES }).notNull(),
  statusReason: text("status_reason"),
  /** Kept by the database's triggers. */
  agentCount: integer("agent_count").notNull().default(0),
  createdAt: integer("created_at").notNull(),
  startedAt: integer("started_at"),
  stoppedAt: integer("stopped_at"),
  /** How often it was stopped: a run from before the last stop never continues. */
  stops: integer("stops").notNull().default(0),
  /** Null unless deleted. */
  removedAt: integer("removed_at"),
  /** Null without any. */
  modelLimits: text("model_limits", { mode: "json" }).$type<ModelLimits>(),
});

export type Instance = typeof instances.$inferSelect;
