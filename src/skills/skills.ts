import { AppError, notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { createFairCache } from "../lib/fair-cache.ts";
import { refuseOverQuota } from "../limits/account-limits.ts";
import type { SkillOutline } from "../runtime/prompt-room.ts";
import type { Store } from "../storage/store.ts";
import type { Catalog, SkillFolder } from "./catalog.ts";
import { fingerprint } from "./fingerprint.ts";
import { skillQueries } from "./queries.ts";
import type { InstalledSkillRow, SkillSource } from "./schema.ts";
import { instructionsOf, parseSkill } from "./skill-file.ts";

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
  /** The names of the host's tools. */
  toolNames(): readonly string[];
}

/** A skill of the catalog, by name, or a custom one, by its files. */
export type SkillChoice = { name: string } | { files: ReadonlyMap<string, string> };

export interface InstalledSkill extends InstalledSkillRow {
  /** The required secrets that its instance lacks. */
  missingSecrets: string[];
  /** The required tools that the host does not have. */
  missingTools: string[];
}

/** What the skills of an instance declare together. */
export interface Requirements {
  /** Hosts that its agents may send requests to, in lower case, with a port unless it is the scheme's default. */
  hosts: ReadonlySet<string>;
  /** By the name of each required secret, the hosts that it may be sent to; all of them are among `hosts`. */
  secrets: ReadonlyMap<string, ReadonlySet<string>>;
}

/** A skill's texts as they were when it was installed. */
export interface SkillTexts {
  /** The Markdown below the front matter. */
  instructions: string;
  /** All files by name, `SKILL.md` among them. */
  files: ReadonlyMap<string, string>;
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
  /** Throws `not_found`, or `conflict` if its files are no longer those that were installed. */
  read(instanceId: string, name: string): SkillTexts;
  /** For a prompt: the Markdown below the front matter, or why it cannot be used. Throws `not_found`. */
  instructions(instanceId: string, name: string): string;
  /** Throws nothing: an instance without skills requires nothing. */
  requirementsOf(instanceId: string): Requirements;
}

export function createSkills({ store, clock, catalog, secretNames, toolNames }: SkillParts): Skills {
  const queries = skillQueries(store.db);
  /** Of instances in use: every prompt asks. Long ones are read each time. */
  const outlines = createFairCache<SkillOutline[]>(MAX_KEPT_OUTLINES, 1);
  pinOlder(store, queries);

  function withMissing(row: InstalledSkillRow, held = secretNames(row.instanceId)): InstalledSkill {
    const tools = toolNames();
    return {
      ...row,
      missingSecrets: row.requires.secrets.filter((name) => !held.includes(name)),
      missingTools: row.requires.tools.filter((name) => !tools.includes(name)),
    };
  }

  function read(instanceId: string, name: string): SkillTexts {
    const row = queries.texts(instanceId, name);
    if (row === undefined) throw notFound("skill");
    const files = new Map(Object.entries(row.files));
    if (fingerprint(files) !== row.sha256) {
      throw new AppError(
        "conflict",
        `the skill ${name} was changed after its installation and cannot be used; remove it and install it again`,
      );
    }
    return { instructions: instructionsOf(files.get("SKILL.md") ?? ""), files };
  }

  function add(instanceId: string, source: SkillSource, { skill, texts, sha256 }: SkillFolder): InstalledSkill {
    const { name, version, description, requires, secretHosts, instructions } = skill;
    const told = { name, version, description, requires, secretHosts, sha256 };
    const row = { instanceId, ...told, source, installedAt: clock.now() };
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
        : add(instanceId, "upload", {
            skill: parseSkill(choice.files),
            texts: choice.files,
            sha256: fingerprint(choice.files),
          }),
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
    read,
    instructions(instanceId, name) {
      try {
        return read(instanceId, name).instructions;
      } catch (error) {
        if (error instanceof AppError && error.code === "conflict") return `(${error.message}.)`;
        throw error;
      }
    },
    requirementsOf(instanceId) {
      const hosts = new Set<string>();
      const secrets = new Map<string, Set<string>>();
      for (const { requires, secretHosts } of queries.requirements(instanceId)) {
        for (const host of requires.hosts) hosts.add(host);
        for (const [name, allowed] of Object.entries(secretHosts)) {
          secrets.set(name, new Set([...(secrets.get(name) ?? []), ...allowed]));
        }
      }
      return { hosts, secrets };
    },
  };
}

/** Pins the skills that were installed before there were pins, as they are now. */
function pinOlder(store: Store, queries: ReturnType<typeof skillQueries>): void {
  for (let row = queries.unpinned(); row; row = queries.unpinned()) {
    const { instanceId, name, files } = row;
    store.transaction(() => queries.pin(instanceId, name, fingerprint(new Map(Object.entries(files)))));
  }
}
