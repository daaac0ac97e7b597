import { and, asc, count, eq, getTableColumns, gt, sql } from "drizzle-orm";
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { lazily } from "../lib/lazily.ts";
import type { Db } from "../storage/store.ts";
import type { SkillNeeds } from "./skill-file.ts";

export const SKILL_SOURCES = ["catalog", "upload"] as const;
export type SkillSource = (typeof SKILL_SOURCES)[number];

const installedSkills = sqliteTable(
  "installed_skills",
  {
    instanceId: text("instance_id").notNull(),
    name: text("name").notNull(),
    version: text("version").notNull(),
    description: text("description").notNull(),
    source: text("source", { enum: SKILL_SOURCES }).notNull(),
    installedAt: integer("installed_at").notNull(),
    requires: text("requires", { mode: "json" }).$type<SkillNeeds>().notNull(),
    instructions: text("instructions").notNull(),
    files: text("files", { mode: "json" }).$type<Record<string, string>>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.instanceId, table.name] })],
);

type Row = typeof installedSkills.$inferSelect;
export type InstalledSkillRow = Omit<Row, "instructions" | "files">;
/** What a prompt tells of a skill. */
export type PromptSkill = Pick<Row, "name" | "description" | "instructions">;

export function skillTable(db: Db) {
  const p = sql.placeholder;
  const { instructions, files: _, ...shown } = getTableColumns(installedSkills);
  const ofInstance = eq(installedSkills.instanceId, p("instanceId"));
  const page = lazily(() =>
    db
      .select(shown)
      .from(installedSkills)
      .where(and(ofInstance, gt(installedSkills.name, p("after"))))
      .orderBy(asc(installedSkills.name))
      .limit(p("limit"))
      .prepare(),
  );
  const forPrompt = lazily(() =>
    db
      .select({ name: shown.name, description: shown.description, instructions })
      .from(installedSkills)
      .where(ofInstance)
      .orderBy(asc(installedSkills.name))
      .prepare(),
  );
  const counted = lazily(() => db.select({ count: count() }).from(installedSkills).where(ofInstance).prepare());

  return {
    /** By name, ascending; names are never empty, so `""` is before all of them. */
    page: (instanceId: string, after: string, limit: number): InstalledSkillRow[] =>
      page().all({ instanceId, after, limit }),
    forPrompt: (instanceId: string): PromptSkill[] => forPrompt().all({ instanceId }),
    count: (instanceId: string): number => counted().get({ instanceId })?.count ?? 0,
    /** False where one of this name is there. */
    add: (row: Row): boolean =>
      db.insert(installedSkills).values(row).onConflictDoNothing().returning({ name: installedSkills.name }).get() !==
      undefined,
    /** False where there was none. */
    remove: (instanceId: string, name: string): boolean =>
      db
        .delete(installedSkills)
        .where(and(eq(installedSkills.instanceId, instanceId), eq(installedSkills.name, name)))
        .returning({ name: installedSkills.name })
        .get() !== undefined,
  };
}
