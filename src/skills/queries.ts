import { and, asc, count, eq, getTableColumns, gt, sql } from "drizzle-orm";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { type InstalledSkillRow, installedSkills, type SkillOutline, type SkillRow } from "./schema.ts";
import type { SkillNeeds } from "./skill-file.ts";

export function skillQueries(db: Db) {
  const p = sql.placeholder;
  const { instructions, files: _, textBytes, ...shown } = getTableColumns(installedSkills);
  const ofInstance = eq(installedSkills.instanceId, p("instanceId"));
  const page = prepared(db, () =>
    db
      .select(shown)
      .from(installedSkills)
      .where(and(ofInstance, gt(installedSkills.name, p("after"))))
      .orderBy(asc(installedSkills.name))
      .limit(p("limit")),
  );
  const outline = prepared(db, () =>
    db
      .select({
        name: shown.name,
        description: shown.description,
        bytes: sql<number>`octet_length(${instructions})`,
      })
      .from(installedSkills)
      .where(ofInstance)
      .orderBy(asc(installedSkills.name)),
  );
  const needs = prepared(db, () => db.select({ requires: shown.requires }).from(installedSkills).where(ofInstance));
  const instructionsOf = prepared(db, () =>
    db
      .select({ instructions })
      .from(installedSkills)
      .where(and(ofInstance, eq(installedSkills.name, p("name")))),
  );
  const used = prepared(db, () =>
    db
      .select({ skills: count(), textBytes: sql<number>`coalesce(sum(${textBytes}), 0)` })
      .from(installedSkills)
      .where(ofInstance),
  );

  return {
    /** By name, ascending; names are never empty, so `""` is before all of them. */
    page: (instanceId: string, after: string, limit: number): InstalledSkillRow[] =>
      page.all({ instanceId, after, limit }),
    outline: (instanceId: string): SkillOutline[] => outline.all({ instanceId }),
    needs: (instanceId: string): SkillNeeds[] => needs.all({ instanceId }).map(({ requires }) => requires),
    instructions: (instanceId: string, name: string): string | undefined =>
      instructionsOf.get({ instanceId, name })?.instructions,
    used: (instanceId: string): { skills: number; textBytes: number } =>
      used.get({ instanceId }) ?? { skills: 0, textBytes: 0 },
    /** False if one of this name exists. */
    add: (row: SkillRow): boolean =>
      db.insert(installedSkills).values(row).onConflictDoNothing().returning({ name: installedSkills.name }).get() !==
      undefined,
    /** False if there was none. */
    remove: (instanceId: string, name: string): boolean =>
      db
        .delete(installedSkills)
        .where(and(eq(installedSkills.instanceId, instanceId), eq(installedSkills.name, name)))
        .returning({ name: installedSkills.name })
        .get() !== undefined,
  };
}
