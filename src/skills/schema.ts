import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { SecretHosts, SkillNeeds } from "./skill-file.ts";

export const SKILL_SOURCES = ["catalog", "upload"] as const;
export type SkillSource = (typeof SKILL_SOURCES)[number];

export const installedSkills = sqliteTable(
  "installed_skills",
  {
    instanceId: text("instance_id").notNull(),
    name: text("name").notNull(),
    version: text("version").notNull(),
    description: text("description").notNull(),
    source: text("source", { enum: SKILL_SOURCES }).notNull(),
    installedAt: integer("installed_at").notNull(),
    requires: text("requires", { mode: "json" }).$type<SkillNeeds>().notNull(),
    secretHosts: text("secret_hosts", { mode: "json" }).$type<SecretHosts>().notNull(),
    /** Null in the database only until `pinOlder` has run. */
    sha256: text("sha256").notNull(),
    textBytes: integer("text_bytes").notNull(),
    instructions: text("instructions").notNull(),
    files: text("files", { mode: "json" }).$type<Record<string, string>>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.instanceId, table.name] })],
);

export type SkillRow = typeof installedSkills.$inferSelect;
/** Without its texts. */
export type InstalledSkillRow = Omit<SkillRow, "instructions" | "files" | "textBytes">;
