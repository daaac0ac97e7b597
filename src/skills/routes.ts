import { z } from "zod";
import { pageOf, pageQuery, pageStart, toPage } from "../http/paging.ts";
import { type Route, route } from "../http/route.ts";
import type { Instances } from "../instances/instances.ts";
import { isoTime } from "../lib/clock.ts";
import type { Catalog } from "./catalog.ts";
import { SkillInput, skillChoice } from "./input.ts";
import type { Skill } from "./skill-file.ts";
import type { InstalledSkill, Skills } from "./skills.ts";
import { SKILL_SOURCES } from "./table.ts";

const SKILLS = "/v1/instances/:instanceId/skills";
const names = z.array(z.string());

const CatalogRecord = z.object({
  name: z.string(),
  description: z.string(),
  version: z.string(),
  license: z.string().nullable(),
  tags: names,
  requires: z.object({ secrets: names, hosts: names, tools: names }),
});
const InstalledRecord = z.object({
  name: z.string(),
  version: z.string(),
  description: z.string(),
  source: z.enum(SKILL_SOURCES),
  installedAt: z.iso.datetime(),
  missingSecrets: names,
});

const show = ({ name, description, version, license, tags, requires }: Skill) => ({
  name,
  description,
  version,
  license,
  tags,
  requires,
});
const showInstalled = ({ name, version, description, source, installedAt, missingSecrets }: InstalledSkill) => ({
  name,
  version,
  description,
  source,
  installedAt: isoTime(installedAt),
  missingSecrets,
});

export function skillRoutes(catalog: Catalog, skills: Skills, instances: Instances): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/skills",
      summary: "The catalog of built-in skills",
      access: "public",
      query: pageQuery,
      answer: pageOf(CatalogRecord),
      handle({ query }) {
        const start = pageStart("catalog", query());
        return toPage(start, catalog.list(start.position, start.limit + 1), ({ name }) => name, show);
      },
    }),
    route({
      method: "GET",
      path: "/v1/skills/:name",
      summary: "One built-in skill with its instructions",
      access: "public",
      answer: CatalogRecord.extend({ instructions: z.string(), files: names }),
      handle({ params }) {
        const { skill } = catalog.get(params.name);
        return { ...show(skill), instructions: skill.instructions, files: skill.files };
      },
    }),
    route({
      method: "POST",
      path: SKILLS,
      summary: "Install a skill of the catalog, or one's own by its files",
      access: "write",
      body: SkillInput,
      status: 201,
      answer: InstalledRecord,
      errors: ["conflict"],
      async handle({ caller, params, body, once }) {
        instances.get(caller, params.instanceId);
        const choice = skillChoice(await body());
        return once(() => {
          const { instanceId } = instances.get(caller, params.instanceId);
          return showInstalled(skills.install(instanceId, choice));
        });
      },
    }),
    route({
      method: "GET",
      path: SKILLS,
      summary: "List an instance's skills, by name",
      access: "read",
      query: pageQuery,
      answer: pageOf(InstalledRecord),
      handle({ caller, params, query }) {
        const { instanceId } = instances.get(caller, params.instanceId);
        const start = pageStart(`skills ${instanceId}`, query());
        const rows = skills.list(instanceId, start.position, start.limit + 1);
        return toPage(start, rows, ({ name }) => name, showInstalled);
      },
    }),
    route({
      method: "DELETE",
      path: `${SKILLS}/:name`,
      summary: "Remove a skill from an instance",
      access: "write",
      answer: z.object({ name: z.string(), deleted: z.literal(true) }),
      handle: ({ caller, params, once }) =>
        once(() => {
          const { instanceId } = instances.get(caller, params.instanceId);
          skills.remove(instanceId, params.name);
          return { name: params.name, deleted: true };
        }),
    }),
  ];
}
