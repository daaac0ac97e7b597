import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { APPROVAL_STATUSES } from "./status.ts";

/** What an agent asks its owner; without options the answer is in the owner's own words. */
export interface Question {
  question: string;
  options: string[];
}

export const approvals = sqliteTable("approvals", {
  approvalId: text("approval_id").primaryKey(),
  accountId: text("account_id").notNull(),
  instanceId: text("instance_id").notNull(),
  agentId: text("agent_id").notNull(),
  conversationId: text("conversation_id").notNull(),
  runId: text("run_id").notNull(),
  /** Where its run begins in the agent's log. */
  firstEventId: integer("first_event_id").notNull(),
  kind: text("kind", { enum: ["tool", "question"] }).notNull(),
  status: text("status", { enum: APPROVAL_STATUSES }).notNull(),
  tool: text("tool").notNull(),
  /** JSON, exactly as it would be executed. */
  input: text("input").notNull(),
  inputHash: text("input_hash").notNull(),
  /** The version of what the call changes, when it was asked about. */
  basis: text("basis"),
  tainted: integer("tainted", { mode: "boolean" }).notNull(),
  questions: text("questions", { mode: "json" }).$type<Question[]>(),
  answers: text("answers", { mode: "json" }).$type<string[]>(),
  note: text("note"),
  decidedBy: text("decided_by"),
  decidedAt: integer("decided_at"),
  expiresAt: integer("expires_at").notNull(),
  createdAt: integer("created_at").notNull(),
});

export const approvalRules = sqliteTable("approval_rules", {
  ruleId: text("rule_id").primaryKey(),
  instanceId: text("instance_id").notNull(),
  agentId: text("agent_id").notNull(),
  tool: text("tool").notNull(),
  host: text("host"),
  method: text("method"),
  createdAt: integer("created_at").notNull(),
});

export type Approval = typeof approvals.$inferSelect;
export type ApprovalRule = typeof approvalRules.$inferSelect;
