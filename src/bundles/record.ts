import { z } from "zod";
import { agentFields, showAgent } from "../agents/record.ts";
import { POLICIES } from "../tools/tool.ts";
import type { Imported } from "./import.ts";
import { SKILL_STATES } from "./review.ts";

const names = z.array(z.string());

/** What an import has made, and what its owner should look at (docs/contract/api.md, Bundles). */
export const ImportRecord = z.lazy(() =>
  z.object({
    ...agentFields(),
    imported: z.object({ files: z.int(), bytes: z.int(), conversations: z.int(), messages: z.int() }),
    review: z.object({
      skills: z
        .array(
          z.object({
            name: z.string(),
            version: z.string(),
            sha256: z.string(),
            state: z.enum(SKILL_STATES).describe("Whether the instance has it; the import has installed none"),
            requires: z.object({ secrets: names, hosts: names, tools: names }),
            missingSecrets: names,
            missingTools: names,
          }),
        )
        .describe("What the agent could use where it comes from"),
      policies: z
        .array(z.object({ tool: z.string(), policy: z.enum(POLICIES) }))
        .describe("Words on tools that are switched off: the agent has the default policies"),
      rules: z
        .array(z.object({ tool: z.string(), host: z.string().nullable(), method: z.string().nullable() }))
        .describe("What was not asked again where it comes from, and is asked here"),
      model: z
        .string()
        .nullable()
        .describe("A model that this host does not offer: the agent has its others, or the default one"),
      schedules: z
        .array(
          z.object({
            name: z.string(),
            cron: z.string().nullable(),
            everySeconds: z.int().nullable(),
            timeZone: z.string(),
          }),
        )
        .describe("They are switched off"),
      heartbeat: agentFields().heartbeat.describe("It is switched off"),
      leftOut: names.describe("Parts of the bundle that were not imported"),
    }),
  }),
);
export type ImportRecord = z.output<typeof ImportRecord>;

export const showImported = ({ agent, conversations, messages, review }: Imported): ImportRecord => ({
  ...showAgent(agent),
  imported: { files: agent.fileCount, bytes: agent.fileBytes, conversations, messages },
  review,
});
