import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { CONVERSATIONS, KINDS, WHEN_MISSED } from "./choices.ts";

export const SLOT_STATUSES = ["ran", "skipped", "missed", "failed"] as const;

export const schedules = sqliteTable("schedules", {
  scheduleId: text("schedule_id").primaryKey(),
  agentId: text("agent_id").notNull(),
  kind: text("kind", { enum: KINDS }).notNull(),
  name: text("name").notNull(),
  message: text("message").notNull(),
  cron: text("cron"),
  everySeconds: integer("every_seconds"),
  anchor: integer("anchor").notNull(),
  timeZone: text("time_zone").notNull(),
  enabled: integer("enabled", { mode: "boolean" }).notNull(),
  missed: text("missed", { enum: WHEN_MISSED }).notNull(),
  activeFrom: text("active_from"),
  activeTo: text("active_to"),
  conversation: text("conversation", { enum: CONVERSATIONS }).notNull(),
  announce: integer("announce", { mode: "boolean" }).notNull(),
  model: text("model"),
  conversationId: text("conversation_id"),
  nextAt: integer("next_at"),
  lastSlot: integer("last_slot"),
  failuresInARow: integer("failures_in_a_row").notNull(),
  createdAt: integer("created_at").notNull(),
  updatedAt: integer("updated_at").notNull(),
});

export const scheduleSlots = sqliteTable(
  "schedule_slots",
  {
    scheduleId: text("schedule_id").notNull(),
    slotAt: integer("slot_at").notNull(),
    status: text("status", { enum: SLOT_STATUSES }).notNull(),
    reason: text("reason"),
    runId: text("run_id"),
  },
  (table) => [primaryKey({ columns: [table.scheduleId, table.slotAt] })],
);

export type Schedule = typeof schedules.$inferSelect;
export type Slot = typeof scheduleSlots.$inferSelect;
