import { blob, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Authorizations that wait for a browser: at most one for each server. */
export const mcpAuthorizations = sqliteTable("mcp_authorizations", {
  serverId: text("server_id").primaryKey(),
  stateHash: blob("state_hash", { mode: "buffer" }).notNull(),
  dataKeyId: integer("data_key_id").notNull(),
  sealed: blob("sealed", { mode: "buffer" }).notNull(),
  expiresAt: integer("expires_at").notNull(),
});

/** What authorizes the host at a server: tokens, and the client that they were given to. */
export const mcpCredentials = sqliteTable("mcp_credentials", {
  serverId: text("server_id").primaryKey(),
  issuer: text("issuer").notNull(),
  dataKeyId: integer("data_key_id").notNull(),
  sealed: blob("sealed", { mode: "buffer" }).notNull(),
  updatedAt: integer("updated_at").notNull(),
});

export type PendingRow = typeof mcpAuthorizations.$inferSelect;
export type CredentialsRow = typeof mcpCredentials.$inferSelect;
