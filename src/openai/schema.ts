import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Said } from "./turns.ts";

/** Responses that a later one may continue. */
export const responses = sqliteTable("responses", {
  responseId: text("response_id").primaryKey(),
  agentId: text("agent_id").notNull(),
  conversationId: text("conversation_id").notNull(),
  messageId: text("message_id").notNull(),
  previousId: text("previous_id"),
  /** What was said in the request, and what the agent answered. */
  said: text("said", { mode: "json" }).$type<Said[]>().notNull(),
  tainted: integer("tainted", { mode: "boolean" }).notNull(),
});
export type StoredResponse = typeof responses.$inferSelect;
