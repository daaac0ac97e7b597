import { and, asc, count, eq, getTableColumns, gt, isNull, sql } from "drizzle-orm";
import type { SkillOutline } from "../runtime/prompt-room.ts";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { type InstalledSkillRow, installedSkills, type SkillRow } from "./schema.ts";

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
        textBytes,
      })
      .from(installedSkills)
      .where(ofInstance)
      .orderBy(asc(installedSkills.name)),
  );
  const requirements = prepared(db, () =>
    db.select({ requires: shown.requires, secretHosts: shown.secretHosts }).from(installedSkills).where(ofInstance),
  );
  const textsOf = prepared(db, () =>
    db
      .select({ files: installedSkills.files, sha256: shown.sha256 })
      .from(installedSkills)
      .where(and(ofInstance, eq(installedSkills.name, p("name")))),
  );
  const unpinned = prepared(db, () =>
    db
      .select({ instanceId: shown.instanceId, name: shown.name, files: installedSkills.files })
      .from(installedSkills)
      .where(isNull(installedSkills.sha256))
      .limit(1),
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
    requirements: (instanceId: string): Pick<SkillRow, "requires" | "secretHosts">[] =>
      requirements.all({ instanceId }),
    texts: (instanceId: string, name: string): Pick<SkillRow, "files" | "sha256"> | undefined =>
      textsOf.get({ instanceId, name }),
    /** One skill that has no hash yet. */
    unpinned: (): Pick<SkillRow, "instanceId" | "name" | "files"> | undefined => unpinned.get(),
    pin: (instanceId: string, name: string, sha256: string): void => {
      db.update(installedSkills)
        .set({ sha256 })
        .where(and(eq(installedSkills.instanceId, instanceId), eq(installedSkills.name, name)))
        .run();
    },
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
