import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const QUEUED = ["all", "conversation", "file", "swept"] as const;

/** What an agent's memory has yet to take in; triggers fill it. */
export const memoryQueue = sqliteTable(
  "memory_queue",
  {
    accountId: text("account_id").notNull(),
    kind: text("kind", { enum: QUEUED }).notNull(),
    agentId: text("agent_id").notNull(),
    source: text("source").notNull(),
    changes: integer("changes").notNull().default(1),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.kind, table.agentId, table.source] })],
);

export const memoryVectorsDue = sqliteTable(
  "memory_vectors_due",
  { accountId: text("account_id").notNull(), agentId: text("agent_id").notNull() },
  (table) => [primaryKey({ columns: [table.accountId, table.agentId] })],
);

/** Which run wrote a line of the memory's files. */
export const memoryNotes = sqliteTable("memory_notes", {
  noteId: integer("note_id").primaryKey(),
  agentId: text("agent_id").notNull(),
  file: text("file").notNull(),
  lineHash: text("line_hash").notNull(),
  runId: text("run_id").notNull(),
  conversationId: text("conversation_id").notNull(),
  tainted: integer("tainted", { mode: "boolean" }).notNull(),
  createdAt: integer("created_at").notNull(),
});

/** Which run wrote a file last, as it was then. */
export const memoryFiles = sqliteTable(
  "memory_files",
  {
    agentId: text("agent_id").notNull(),
    name: text("name").notNull(),
    size: integer("size").notNull(),
    updatedAt: integer("updated_at").notNull(),
    runId: text("run_id").notNull(),
    conversationId: text("conversation_id").notNull(),
  },
  (table) => [primaryKey({ columns: [table.agentId, table.name] })],
);

/** Messages that the owner had the memory forget; without a run, all of the conversation's, up to this one. */
export const memoryForgotten = sqliteTable(
  "memory_forgotten",
  {
    conversationId: text("conversation_id").notNull(),
    runId: text("run_id").notNull(),
    upTo: integer("up_to").notNull(),
  },
  (table) => [primaryKey({ columns: [table.conversationId, table.runId] })],
);

export type Queued = typeof memoryQueue.$inferSelect;
export type Note = typeof memoryNotes.$inferSelect;
