import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const SERVER_STATUSES = ["ready", "unreachable", "needs_authorization", "changed"] as const;
export type ServerStatus = (typeof SERVER_STATUSES)[number];

/** What a server says of one of its tools. */
export interface ToolDefinition {
  /** As the server calls it. */
  name: string;
  description: string;
  /** JSON Schema. */
  inputSchema: Record<string, unknown>;
  /** SHA-256 of all that, in hexadecimal. */
  hash: string;
}

/** A tool as it was seen last. */
export interface SeenTool extends ToolDefinition {
  /** The hash of the definition that the owner has approved; null where there is none. */
  approvedHash: string | null;
  /** Whether the server offers it no more. */
  isGone: boolean;
}

export const mcpServers = sqliteTable("mcp_servers", {
  serverId: text("server_id").primaryKey(),
  instanceId: text("instance_id").notNull(),
  name: text("name").notNull(),
  url: text("url").notNull(),
  headers: text("headers", { mode: "json" }).$type<Readonly<Record<string, string>>>().notNull(),
  status: text("status", { enum: SERVER_STATUSES }).notNull(),
  statusReason: text("status_reason"),
  protocolVersion: text("protocol_version"),
  tools: text("tools", { mode: "json" }).$type<readonly SeenTool[]>().notNull(),
  revision: integer("revision").notNull(),
  createdAt: integer("created_at").notNull(),
  updatedAt: integer("updated_at").notNull(),
});

export type McpServer = typeof mcpServers.$inferSelect;

/** What a client needs to reach a server. */
export type ServerAddress = Pick<McpServer, "serverId" | "instanceId" | "name" | "url" | "headers">;
