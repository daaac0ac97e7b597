import { z } from "zod";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Asked, type Route, route } from "../http/route.ts";
import type { Instances } from "../instances/instances.ts";
import { AppError } from "../lib/app-error.ts";
import { isoTime } from "../lib/clock.ts";
import { record } from "../lib/record.ts";
import { NO_NAMES, parseFileName, refuseClash } from "../workspace/file-name.ts";
import type { Catalog, SkillFolder } from "./catalog.ts";
import { SKILL_SOURCES } from "./schema.ts";
import type { InstalledSkill, SkillChoice, Skills } from "./skills.ts";

const SKILLS = "/v1/instances/:instanceId/skills";
const names = z.array(z.string());

const needs = {
  requires: z.object({ secrets: names, hosts: names, tools: names }),
  secretHosts: z.record(z.string(), names),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
};

const CatalogRecord = record("ListedSkill", () =>
  z.object({
    name: z.string(),
    description: z.string(),
    version: z.string(),
    license: z.string().nullable(),
    tags: names,
    ...needs,
  }),
);
const SkillRecord = record("Skill", () => CatalogRecord.unwrap().extend({ instructions: z.string(), files: names }));
const InstalledRecord = record("InstanceSkill", () =>
  z.object({
    name: z.string(),
    version: z.string(),
    description: z.string(),
    source: z.enum(SKILL_SOURCES),
    installedAt: z.iso.datetime(),
    ...needs,
    missingSecrets: names,
    missingTools: names,
  }),
);

const MAX_FILES = 64;
const MAX_FILE_BYTES = 256 * 1024;

const NAME_FORM = "the name of a skill of the catalog";
const FILES_FORM = `an object of 1 to ${MAX_FILES} file names, SKILL.md among them, each with its text`;
const TEXT_FORM = `text of at most ${MAX_FILE_BYTES} bytes`;

const fileText = z
  .string({ error: TEXT_FORM })
  .refine((text) => text.isWellFormed() && Buffer.byteLength(text) <= MAX_FILE_BYTES, { error: TEXT_FORM });

const SkillInput = z
  .object({
    name: z
      .string({ error: NAME_FORM })
      .min(1, { error: NAME_FORM })
      .meta({ examples: ["code-review"] })
      .optional(),
    files: z
      .record(z.string(), fileText, { error: FILES_FORM })
      .refine((files) => Object.hasOwn(files, "SKILL.md") && Object.keys(files).length <= MAX_FILES, {
        error: FILES_FORM,
      })
      .optional(),
  })
  .meta({ oneOf: [{ required: ["name"] }, { required: ["files"] }] });

const show = ({ skill, sha256 }: SkillFolder) => {
  const { name, description, version, license, tags, requires, secretHosts } = skill;
  return { name, description, version, license, tags, requires, secretHosts, sha256 };
};
const showInstalled = ({ instanceId: _, installedAt, ...skill }: InstalledSkill) => ({
  ...skill,
  installedAt: isoTime(installedAt),
});

export function skillRoutes(catalog: Catalog, skills: Skills, instances: Instances): Route[] {
  const instance = ({ caller, params }: Asked<{ instanceId: string }>) => instances.get(caller, params.instanceId);

  return [
    route({
      method: "GET",
      path: "/v1/skills",
      name: "listSkills",
      tag: "skills",
      summary: "The catalog of built-in skills",
      access: "public",
      bound: "page",
      query: pageQuery,
      answer: pageOf(CatalogRecord),
      handle({ query, startPage }) {
        const start = startPage("catalog", query());
        return toPage(start, catalog.list(start.position, start.limit + 1), ({ skill }) => skill.name, show);
      },
    }),
    route({
      method: "GET",
      path: "/v1/skills/:name",
      name: "getSkill",
      tag: "skills",
      summary: "One built-in skill with its instructions",
      access: "public",
      bound: "texts",
      answer: SkillRecord,
      handle({ params }) {
        const folder = catalog.get(params.name);
        return { ...show(folder), instructions: folder.skill.instructions, files: folder.skill.files };
      },
    }),
    route({
      method: "POST",
      path: SKILLS,
      name: "createInstanceSkill",
      tag: "skills",
      summary: "Install a skill from the catalog, or your own by its files",
      description:
        "By `name` one of the catalog, or by `files` one of your own: its `SKILL.md` and what belongs to it.",
      access: "write",
      bound: "record",
      body: SkillInput,
      example: { name: "weather" },
      status: 201,
      answer: InstalledRecord,
      errors: ["conflict"],
      find: instance,
      commit: "shared",
      write: ({ found, body }) => showInstalled(skills.install(found.instanceId, skillChoice(body))),
    }),
    route({
      method: "GET",
      path: SKILLS,
      name: "listInstanceSkills",
      tag: "skills",
      summary: "List an instance's skills, by name",
      access: "read",
      bound: "page",
      query: pageQuery,
      answer: pageOf(InstalledRecord),
      find: instance,
      handle({ found: { instanceId }, query, startPage }) {
        const start = startPage(`skills ${instanceId}`, query());
        const rows = skills.list(instanceId, start.position, start.limit + 1);
        return toPage(start, rows, ({ name }) => name, showInstalled);
      },
    }),
    route({
      method: "DELETE",
      path: `${SKILLS}/:name`,
      name: "deleteInstanceSkill",
      tag: "skills",
      summary: "Remove a skill from an instance",
      access: "write",
      bound: "record",
      answer: z.object({ name: z.string(), deleted: z.literal(true) }),
      find: instance,
      commit: "shared",
      write({ found, params }) {
        skills.remove(found.instanceId, params.name);
        return { name: params.name, deleted: true };
      },
    }),
  ];
}

/** What to install. Throws `invalid_request` for both or neither, and for file names that no workspace accepts. */
function skillChoice({ name, files }: z.output<typeof SkillInput>): SkillChoice {
  if ((name === undefined) === (files === undefined)) {
    throw new AppError("invalid_request", "body: expected either name or files");
  }
  if (name !== undefined) return { name };
  const texts = new Map(Object.entries(files ?? {}));
  for (const path of texts.keys()) parseFileName(path, "files");
  refuseClash(NO_NAMES, texts.keys(), "files");
  return { files: texts };
}
