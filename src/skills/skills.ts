import { AppError, notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { createFairCache } from "../lib/fair-cache.ts";
import { refuseOverQuota } from "../limits/account-limits.ts";
import type { Store } from "../storage/store.ts";
import type { Catalog, SkillFolder } from "./catalog.ts";
import { skillQueries } from "./queries.ts";
import type { InstalledSkillRow, SkillOutline, SkillSource } from "./schema.ts";
import { parseSkill, type SkillNeeds } from "./skill-file.ts";

/** Skills of one instance (docs/contract/api.md, Limits). */
export const MAX_SKILLS = 100;
/** Outlines kept in memory, and the skills in each: at a kilobyte a skill, 16 MiB. */
const MAX_KEPT_OUTLINES = 1_000;
const MAX_KEPT_SKILLS = 16;
/** Total size of an instance's skill files, in UTF-8. */
export const MAX_SKILL_TEXT_BYTES = 16 * 1024 * 1024;

export interface SkillParts {
  store: Store;
  clock: Clock;
  catalog: Catalog;
  /** The names of the secrets that an instance holds. */
  secretNames(instanceId: string): string[];
}

/** A skill of the catalog, by name, or a custom one, by its files. */
export type SkillChoice = { name: string } | { files: ReadonlyMap<string, string> };

export interface InstalledSkill extends InstalledSkillRow {
  /** The required secrets that its instance lacks. */
  missingSecrets: string[];
}

/** An instance's skills. The caller must have checked access to the instance. */
export interface Skills {
  /**
   * Throws `not_found` for a name that is not in the catalog, `conflict` for a skill already installed or beyond a
   * quota, `invalid_request` for files that are not a valid skill.
   */
  install(instanceId: string, choice: SkillChoice): InstalledSkill;
  /** By name, ascending, after `after`. */
  list(instanceId: string, after: string | null, limit: number): InstalledSkill[];
  /** Throws `not_found`. */
  remove(instanceId: string, name: string): void;
  /** By name, without reading any text. */
  outline(instanceId: string): SkillOutline[];
  /** What each installed skill requires. */
  needs(instanceId: string): SkillNeeds[];
  /** The Markdown below the front matter. Throws `not_found`. */
  instructions(instanceId: string, name: string): string;
}

export function createSkills({ store, clock, catalog, secretNames }: SkillParts): Skills {
  const queries = skillQueries(store.db);
  /** Of instances in use: every prompt asks. Long ones are read each time. */
  const outlines = createFairCache<SkillOutline[]>(MAX_KEPT_OUTLINES, 1);

  function withMissing(row: InstalledSkillRow, held = secretNames(row.instanceId)): InstalledSkill {
    return { ...row, missingSecrets: row.requires.secrets.filter((name) => !held.includes(name)) };
  }

  function add(instanceId: string, source: SkillSource, { skill, texts }: SkillFolder): InstalledSkill {
    const { name, version, description, requires, instructions } = skill;
    const row = { instanceId, name, version, description, source, installedAt: clock.now(), requires };
    outlines.delete(instanceId);
    return store.transaction(() => {
      const textBytes = [...texts.values()].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
      if (!queries.add({ ...row, instructions, files: Object.fromEntries(texts), textBytes })) {
        throw new AppError("conflict", `the skill ${name} is installed already`);
      }
      const used = queries.used(instanceId);
      refuseOverQuota("skills", "an instance", used.skills, MAX_SKILLS);
      refuseOverQuota("bytes of skill text", "an instance", used.textBytes, MAX_SKILL_TEXT_BYTES);
      return withMissing(row);
    });
  }

  return {
    install: (instanceId, choice) =>
      "name" in choice
        ? add(instanceId, "catalog", catalog.get(choice.name))
        : add(instanceId, "upload", { skill: parseSkill(choice.files), texts: choice.files }),
    list(instanceId, after, limit) {
      const held = secretNames(instanceId);
      return queries.page(instanceId, after ?? "", limit).map((row) => withMissing(row, held));
    },
    remove(instanceId, name) {
      outlines.delete(instanceId);
      if (!queries.remove(instanceId, name)) throw notFound("skill");
    },
    outline(instanceId) {
      const known = outlines.get(instanceId);
      if (known) return known;
      const found = queries.outline(instanceId);
      if (found.length <= MAX_KEPT_SKILLS) outlines.set(instanceId, instanceId, found);
      return found;
    },
    needs: queries.needs,
    instructions(instanceId, name) {
      const text = queries.instructions(instanceId, name);
      if (text === undefined) throw notFound("skill");
      return text;
    },
  };
}
