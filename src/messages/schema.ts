import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { ErrorCode } from "../lib/app-error.ts";
import type { OutputForm } from "../models/engine.ts";
import type { JournalCall, PastStep } from "../runtime/protocol.ts";
import { WAIT_KINDS, type Wait } from "../tools/tool.ts";

export const OVER_STATUSES = ["completed", "failed", "cancelled"] as const;
export type OverStatus = (typeof OVER_STATUSES)[number];
export const RUN_STATUSES = ["queued", "running", "waiting", ...OVER_STATUSES] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];
/** Queued, in progress, or waiting. */
export const isUnfinished = ({ status }: { status: RunStatus }): boolean =>
  status === "queued" || status === "running" || status === "waiting";
/** Not for another agent, or for a tool. */
export const waitsForPerson = ({ status, waitingKind }: Pick<Run, "status" | "waitingKind">): boolean =>
  status === "waiting" && (waitingKind === "approval" || waitingKind === "answer");
export const FINISH_REASONS = ["stop", "length", "cancelled", "error"] as const;
export type FinishReason = (typeof FINISH_REASONS)[number];

/** Who or what began a conversation, or caused a run. */
export const ORIGINS = ["user", "schedule", "heartbeat", "trigger", "agent", "openai"] as const;
export type OriginType = (typeof ORIGINS)[number];

export const conversations = sqliteTable("conversations", {
  conversationId: text("conversation_id").primaryKey(),
  agentId: text("agent_id").notNull(),
  isDefault: integer("is_default", { mode: "boolean" }).notNull().default(false),
  /** Only an `open` one is visible, not a fork that is being copied, or a deleted one. */
  state: text("state", { enum: ["copying", "open", "removed"] })
    .notNull()
    .default("open"),
  title: text("title"),
  originType: text("origin_type", { enum: ORIGINS }).notNull().default("user"),
  originId: text("origin_id"),
  /** A trigger maintains this and `updatedAt`. */
  messageCount: integer("message_count").notNull().default(0),
  updatedAt: integer("updated_at").notNull(),
  /** Messages and events up to these were cleared. */
  clearedMessageSeq: integer("cleared_message_seq").notNull().default(0),
  clearedEventId: integer("cleared_event_id").notNull().default(0),
  /** How often in a row its messages could not be summarised, and the newest of them at the last try. */
  compactionFailures: integer("compaction_failures").notNull().default(0),
  compactionFailedAt: integer("compaction_failed_at").notNull().default(0),
  createdAt: integer("created_at").notNull(),
});

/** A trigger creates it together with the agent, with the same id after the prefix. */
export const defaultConversationOf = (agentId: string): string => agentId.replace("agt_", "conv_");

export const runs = sqliteTable("runs", {
  runId: text("run_id").primaryKey(),
  agentId: text("agent_id").notNull(),
  instanceId: text("instance_id").notNull(),
  conversationId: text("conversation_id").notNull(),
  messageId: text("message_id").notNull(),
  status: text("status", { enum: RUN_STATUSES }).notNull(),
  originType: text("origin_type", { enum: ORIGINS }).notNull().default("user"),
  originId: text("origin_id"),
  /** The model that answers; null until the run has started. */
  model: text("model"),
  errorCode: text("error_code").$type<ErrorCode>(),
  errorMessage: text("error_message"),
  steps: integer("steps").notNull().default(0),
  promptTokens: integer("prompt_tokens").notNull().default(0),
  completionTokens: integer("completion_tokens").notNull().default(0),
  /** Null before its first call. */
  cachedTokens: integer("cached_tokens"),
  /** Millionths of a US dollar; null where no price is known. */
  cost: integer("cost"),
  /** For a run that has failed because of a limit: when its day or month ends. */
  retryAt: integer("retry_at"),
  firstEventId: integer("first_event_id").notNull(),
  /** How often its instance had been stopped when the run was queued. */
  stops: integer("stops").notNull().default(0),
  createdAt: integer("created_at").notNull(),
  startedAt: integer("started_at"),
  finishedAt: integer("finished_at"),
  /** What it waits for; if several calls wait, the first of them. */
  waitingKind: text("waiting_kind", { enum: WAIT_KINDS }),
  waitingId: text("waiting_id"),
  /** The last event that its saved journal covers; null if it has none. */
  journalUpTo: integer("journal_up_to"),
});

/**
 * What a run had done when it waited. Separate from the rest of the row, because it may be large and is rarely read.
 */
export const savedJournals = sqliteTable("runs", {
  runId: text("run_id").primaryKey(),
  upTo: integer("journal_up_to"),
  steps: text("journal", { mode: "json" }).$type<SavedStep[]>(),
});

/** The form of a run's answer, if it is to be JSON. */
export const runOutputs = sqliteTable("runs", {
  runId: text("run_id").primaryKey(),
  output: text("output", { mode: "json" }).$type<OutputForm>(),
});

export const messages = sqliteTable("messages", {
  messageSeq: integer("message_seq").primaryKey(),
  messageId: text("message_id").notNull(),
  agentId: text("agent_id").notNull(),
  conversationId: text("conversation_id").notNull(),
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
  /** Whether the run that wrote it had read what a stranger may have written. */
  tainted: integer("tainted", { mode: "boolean" }).notNull().default(false),
  /** What caused it, if it is neither a person's nor an answer to one. */
  originType: text("origin_type", { enum: ORIGINS }),
  originId: text("origin_id"),
  /** Of its text, about. */
  tokens: integer("tokens").notNull(),
});

/** What an agent did before it answered, as later prompts show it. */
export const messageSteps = sqliteTable("message_steps", {
  messageId: text("message_id").primaryKey(),
  agentId: text("agent_id").notNull(),
  conversationId: text("conversation_id").notNull(),
  steps: text("steps", { mode: "json" }).$type<PastStep[]>().notNull(),
  tokens: integer("tokens").notNull(),
});

/** What stands in prompts for the oldest messages of a conversation. */
export const summaries = sqliteTable(
  "summaries",
  {
    conversationId: text("conversation_id").notNull(),
    /** The first and the last message that it stands for. */
    fromSeq: integer("from_seq").notNull(),
    toSeq: integer("to_seq").notNull(),
    agentId: text("agent_id").notNull(),
    text: text("text").notNull(),
    /** What was said word for word. */
    items: text("items", { mode: "json" }).$type<string[]>().notNull(),
    /** How many messages it stands for. */
    messages: integer("messages").notNull(),
    tainted: integer("tainted", { mode: "boolean" }).notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.conversationId, table.toSeq] })],
);

/** Runs that are not over and have read what a stranger may have written. */
export const taintedRuns = sqliteTable("tainted_runs", { runId: text("run_id").primaryKey() });

export const events = sqliteTable(
  "events",
  {
    agentId: text("agent_id").notNull(),
    eventId: integer("event_id").notNull(),
    runId: text("run_id"),
    conversationId: text("conversation_id"),
    type: text("type").notNull(),
    data: text("data").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.agentId, table.eventId] })],
);

/** A step of a run that has waited; calls that still wait have `waitsFor`. */
export interface SavedStep {
  text: string;
  calls: SavedCall[];
}
export type SavedCall = JournalCall & { waitsFor?: Wait };

export type Conversation = typeof conversations.$inferSelect;
export type Run = typeof runs.$inferSelect;
export type Message = typeof messages.$inferSelect;
export type StoredSummary = typeof summaries.$inferSelect;
export type StoredEvent = typeof events.$inferSelect;

/** Whether a call of a model has ended, which may have taken nothing. In older rows only its tokens tell. */
export const hasUsage = (run: Pick<Run, "promptTokens" | "completionTokens" | "cachedTokens">): boolean =>
  run.cachedTokens !== null || run.promptTokens + run.completionTokens > 0;
