import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** The tokens and the cost of a call, or of many. */
const figures = {
  promptTokens: integer("prompt_tokens").notNull(),
  cachedTokens: integer("cached_tokens").notNull(),
  completionTokens: integer("completion_tokens").notNull(),
  /** Millionths of a US dollar; null where no price is known. */
  cost: integer("cost"),
};

/** Who called which model, and what for. */
const whose = {
  accountId: text("account_id").notNull(),
  instanceId: text("instance_id"),
  agentId: text("agent_id"),
  runId: text("run_id"),
  model: text("model").notNull(),
  purpose: text("purpose").notNull(),
  /** Whether a model of the host was called, not one of a server that the instance brings. */
  ofHost: integer("of_host", { mode: "boolean" }).notNull(),
};

export const modelCalls = sqliteTable("model_calls", {
  callSeq: integer("call_seq").primaryKey(),
  ...whose,
  outcome: text("outcome").notNull(),
  runs: integer("runs").notNull(),
  ...figures,
  estimated: integer("estimated", { mode: "boolean" }).notNull(),
  /** When the call began: it belongs to that day. */
  createdAt: integer("created_at").notNull(),
});

export const modelReservations = sqliteTable("model_reservations", {
  reservationId: integer("reservation_id").primaryKey(),
  ...whose,
  promptTokens: integer("prompt_tokens").notNull(),
  completionTokens: integer("completion_tokens").notNull(),
  cost: integer("cost"),
  createdAt: integer("created_at").notNull(),
});

/** What `name` is: an agent, an instance, a model. Of `day` and `host` there is one row a day, without a name. */
export const USAGE_KINDS = ["agent", "instance", "model", "day", "host"] as const;
export type UsageKind = (typeof USAGE_KINDS)[number];

export const modelUsage = sqliteTable(
  "model_usage",
  {
    accountId: text("account_id").notNull(),
    kind: text("kind", { enum: USAGE_KINDS }).notNull(),
    name: text("name").notNull(),
    day: text("day").notNull(),
    runs: integer("runs").notNull(),
    modelCalls: integer("model_calls").notNull(),
    ...figures,
  },
  (table) => [primaryKey({ columns: [table.accountId, table.kind, table.name, table.day] })],
);

export const modelUsageMark = sqliteTable("model_usage_mark", {
  only: integer("only").primaryKey(),
  callSeq: integer("call_seq").notNull(),
});

export type StoredCall = Omit<typeof modelCalls.$inferSelect, "callSeq">;
export type Reservation = Omit<typeof modelReservations.$inferSelect, "reservationId">;
export type DayTotals = typeof modelUsage.$inferSelect;
