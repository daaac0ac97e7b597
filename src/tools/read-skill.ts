import { z } from "zod";
import type { Tool } from "./tool.ts";

/** The installed skills, as far as this tool needs them. */
interface SkillReader {
  /** By name, without their texts. */
  outline(instanceId: string): readonly { name: string }[];
  /** Throws, with a message for the model, if the skill cannot be used. */
  read(instanceId: string, name: string): { instructions: string; files: ReadonlyMap<string, string> };
}

const input = z.lazy(() =>
  z.object({
    name: z.string().describe("the skill's name"),
    file: z.string().optional().describe("one of the skill's own files, instead of its instructions"),
  }),
);

/**
 * Gives an agent a skill when it needs it: prompts carry names and descriptions only (docs/contract/runtime.md, Skills).
 * What it reads is the owner's word, who installed the skill, so it does not count as a stranger's.
 */
export const createReadSkill = (skills: SkillReader): Tool<typeof input> => ({
  name: "read_skill",
  description: "Reads the instructions of a skill, or one of its files. Read a skill before you follow it.",
  input,
  deadlineMs: 5_000,
  isCore: true,
  changes: "nothing",
  untrustedOutput: false,
  async run({ name, file }, { instanceId }) {
    const names = skills.outline(instanceId).map((skill) => skill.name);
    if (!names.includes(name)) {
      const known = names.length > 0 ? `there are: ${names.join(", ")}` : "none is installed";
      throw new Error(`there is no skill "${name}"; ${known}`);
    }
    const { instructions, files } = skills.read(instanceId, name);
    const others = [...files.keys()].filter((other) => other !== "SKILL.md").sort();
    if (file === undefined || file === "SKILL.md") return [instructions, ...listOf(others)].join("\n\n");
    const text = files.get(file.replace(/^\.\//, ""));
    if (text !== undefined) return text;
    throw new Error(
      `the skill ${name} has no file "${file}"; ${others.length > 0 ? `it has: ${others.join(", ")}` : "it has none"}`,
    );
  },
});

const listOf = (files: readonly string[]): string[] =>
  files.length > 0 ? [`Files of this skill: ${files.join(", ")}`] : [];
