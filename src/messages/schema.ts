import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const RUN_STATUSES = ["queued", "running", "completed", "failed", "cancelled"] as const;
export const FINISH_REASONS = ["stop", "length", "cancelled", "error"] as const;
export type FinishReason = (typeof FINISH_REASONS)[number];

export const runs = sqliteTable("runs", {
  runId: text("run_id").primaryKey(),
  agentId: text("agent_id").notNull(),
  instanceId: text("instance_id").notNull(),
  messageId: text("message_id").notNull(),
  status: text("status", { enum: RUN_STATUSES }).notNull(),
  errorCode: text("error_code"),
  errorMessage: text("error_message"),
  steps: integer("steps").notNull().default(0),
  promptTokens: integer("prompt_tokens").notNull().default(0),
  completionTokens: integer("completion_tokens").notNull().default(0),
  firstEventId: integer("first_event_id").notNull(),
  /** Of its instance, when it was queued. */
  stops: integer("stops").notNull().default(0),
  createdAt: integer("created_at").notNull(),
  startedAt: integer("started_at"),
  finishedAt: integer("finished_at"),
});

export const messages = sqliteTable("messages", {
  messageSeq: integer("message_seq").primaryKey(),
  messageId: text("message_id").notNull(),
  agentId: text("agent_id").notNull(),
  runId: text("run_id").notNull(),
  role: text("role", { enum: ["user", "agent"] }).notNull(),
  text: text("text").notNull(),
  senderType: text("sender_type").notNull(),
  senderId: text("sender_id").notNull(),
  senderName: text("sender_name").notNull(),
  inReplyTo: text("in_reply_to"),
  finishReason: text("finish_reason", { enum: FINISH_REASONS }),
  promptTokens: integer("prompt_tokens"),
  completionTokens: integer("completion_tokens"),
  createdAt: integer("created_at").notNull(),
});

export const events = sqliteTable(
  "events",
  {
    agentId: text("agent_id").notNull(),
    eventId: integer("event_id").notNull(),
    runId: text("run_id"),
    type: text("type").notNull(),
    data: text("data").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.agentId, table.eventId] })],
);

export type Run = typeof runs.$inferSelect;
export type Message = typeof messages.$inferSelect;
export type StoredEvent = typeof events.$inferSelect;
