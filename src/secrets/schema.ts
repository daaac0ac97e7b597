import { blob, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const secrets = sqliteTable(
  "secrets",
  {
    instanceId: text("instance_id").notNull(),
    key: text("key").notNull(),
    dataKeyId: integer("data_key_id").notNull(),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
    sealed: blob("sealed", { mode: "buffer" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.instanceId, table.key] })],
);

export const dataKeys = sqliteTable("data_keys", {
  dataKeyId: integer("data_key_id").primaryKey(),
  wrapped: blob("wrapped", { mode: "buffer" }).notNull(),
  createdAt: integer("created_at").notNull(),
});

export type Secret = typeof secrets.$inferSelect;
/** What may be shown of a secret: everything but its value. */
export type SecretName = Pick<Secret, "key" | "createdAt" | "updatedAt">;
export type DataKeyRow = typeof dataKeys.$inferSelect;
