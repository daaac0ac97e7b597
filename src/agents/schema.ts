import { customType, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { HoursOfDay } from "../lib/time-forms.ts";
import type { ModelLimits } from "../limits/model-limits.ts";
import type { Policy } from "../tools/tool.ts";

/** The owner's word on an agent's tools, by their names. */
export type ToolPolicies = Readonly<Record<string, Policy>>;

/** How often the agent looks what its HEARTBEAT.md asks of it, and at which hours of the zone's day. */
export interface Heartbeat {
  everySeconds: number;
  timeZone: string;
  activeHours: HoursOfDay | null;
}

/** One model, or several that are tried in this order. */
export type ModelChoice = string | readonly string[];

/** Several are a JSON array: no model's name begins like one. */
const modelChoice = customType<{ data: ModelChoice; driverData: string }>({
  dataType: () => "text",
  toDriver: (choice) => (typeof choice === "string" ? choice : JSON.stringify(choice)),
  fromDriver: (stored) => (stored.startsWith("[") ? (JSON.parse(stored) as string[]) : stored),
});

export const agents = sqliteTable("agents", {
  agentId: text("agent_id").primaryKey(),
  instanceId: text("instance_id").notNull(),
  name: text("name").notNull(),
  slug: text("slug").notNull(),
  displayName: text("display_name").notNull(),
  model: modelChoice("model"),
  lastEventId: integer("last_event_id").notNull().default(0),
  createdAt: integer("created_at").notNull(),
  updatedAt: integer("updated_at").notNull(),
  /** Totals of the workspace's index, maintained by triggers. */
  fileCount: integer("file_count").notNull().default(0),
  fileBytes: integer("file_bytes").notNull().default(0),
  fileNameBytes: integer("file_name_bytes").notNull().default(0),
  /** When the index was last compared with the disk; null if never, so it may be empty. */
  indexedAt: integer("indexed_at"),
  /** Null unless deleted. */
  removedAt: integer("removed_at"),
  /** The size of the events that are kept, and the last one that is not. */
  eventBytes: integer("event_bytes").notNull().default(0),
  prunedEventId: integer("pruned_event_id").notNull().default(0),
  /** Null where the owner has said nothing. */
  tools: text("tools", { mode: "json" }).$type<ToolPolicies>(),
  heartbeat: text("heartbeat", { mode: "json" }).$type<Heartbeat>(),
  /** Null without any. */
  modelLimits: text("model_limits", { mode: "json" }).$type<ModelLimits>(),
});

/** The index of workspace files: the contents are on disk. */
export const workspaceFiles = sqliteTable(
  "workspace_files",
  {
    agentId: text("agent_id").notNull(),
    name: text("name").notNull(),
    size: integer("size").notNull(),
    updatedAt: integer("updated_at").notNull(),
    /** Whether a tainted run wrote it, or a part of it, since a person last did. */
    tainted: integer("tainted", { mode: "boolean" }).notNull().default(false),
  },
  (table) => [primaryKey({ columns: [table.agentId, table.name] })],
);

export const workspaceChanges = sqliteTable("workspace_changes", {
  changeId: text("change_id").primaryKey(),
  instanceId: text("instance_id").notNull(),
});

export type Agent = typeof agents.$inferSelect;
