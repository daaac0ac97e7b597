import type { Heartbeat } from "../agents/schema.ts";
import { AppError } from "../lib/app-error.ts";
import type { Schedule } from "../schedules/schema.ts";
import type { Catalog } from "../skills/catalog.ts";
import { fingerprint } from "../skills/fingerprint.ts";
import { parseSkill, type SkillNeeds } from "../skills/skill-file.ts";
import type { Skills } from "../skills/skills.ts";
import { pauseAfter } from "../storage/background-work.ts";
import type { Policy } from "../tools/tool.ts";
import type { Manifest } from "./format.ts";

/**
 * Whether the instance has a skill of a bundle: the same files (`installed`), others under its name (`different`), none but
 * they are in the catalog (`catalog`), or none (`missing`).
 */
export const SKILL_STATES = ["installed", "different", "catalog", "missing"] as const;

export interface ReviewedSkill {
  name: string;
  version: string;
  sha256: string;
  state: (typeof SKILL_STATES)[number];
  requires: SkillNeeds;
  /** What the instance lacks of it. */
  missingSecrets: string[];
  missingTools: string[];
}

/** What a person should look at after an import: what arrived switched off, and what is not there. */
export interface Review {
  skills: ReviewedSkill[];
  /** The owner's words on tools that would allow more than is usual: the agent has the default policies. */
  policies: { tool: string; policy: Policy }[];
  /** What its owner wanted not to be asked again: here it is asked. */
  rules: Manifest["rules"];
  /** A model that this host does not offer: the agent has its others, or the default one. */
  model: string | null;
  /** They are off. */
  schedules: Pick<Schedule, "name" | "cron" | "everySeconds" | "timeZone">[];
  /** It is off. */
  heartbeat: Heartbeat | null;
  leftOut: string[];
}

export interface SkillReviewParts {
  catalog: Pick<Catalog, "list">;
  skills: Pick<Skills, "list">;
  secretNames(instanceId: string): string[];
  toolNames(): readonly string[];
}

const MAX_SKILLS = 100;

/** What the skills of a bundle are and need. None is installed. `leftOut` hears of files that are no skill. */
export async function reviewSkills(
  { catalog, skills, secretNames, toolNames }: SkillReviewParts,
  instanceId: string,
  given: ReadonlyMap<string, ReadonlyMap<string, string>>,
  leftOut: (what: string) => void,
): Promise<ReviewedSkill[]> {
  const reviewed: ReviewedSkill[] = [];
  for (const [folder, texts] of given) {
    const startedMs = performance.now();
    try {
      const { name, version, requires } = parseSkill(texts, folder);
      const sha256 = fingerprint(texts);
      const installed = skills.list(instanceId, null, MAX_SKILLS).find((skill) => skill.name === name);
      const known = catalog.list(null, Number.MAX_SAFE_INTEGER).find(({ skill }) => skill.name === name);
      const held = secretNames(instanceId);
      const tools = toolNames();
      reviewed.push({
        name,
        version,
        sha256,
        state: stateOf(sha256, installed?.sha256, known?.sha256),
        requires,
        missingSecrets: requires.secrets.filter((secret) => !held.includes(secret)),
        missingTools: requires.tools.filter((tool) => !tools.includes(tool)),
      });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      leftOut(`skills/${folder}: ${error.message}`);
    }
    await pauseAfter(performance.now() - startedMs);
  }
  return reviewed;
}

function stateOf(sha256: string, installed: string | undefined, known: string | undefined): ReviewedSkill["state"] {
  if (installed !== undefined) return installed === sha256 ? "installed" : "different";
  return known === sha256 ? "catalog" : "missing";
}
