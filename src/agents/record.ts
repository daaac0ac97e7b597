import { z } from "zod";
import { isoTime } from "../lib/clock.ts";
import { idForm } from "../lib/forms.ts";
import { record } from "../lib/record.ts";
import { hoursOfDay } from "../lib/time-forms.ts";
import { ModelLimitsRecord, showModelLimits } from "../limits/model-limits.ts";
import { POLICIES } from "../tools/tool.ts";
import type { AgentWithFiles } from "./agents.ts";
import type { Agent } from "./schema.ts";
import type { ShownNames } from "./shown-files.ts";
import type { IndexedFile } from "./workspace-files.ts";

/** An agent without its files. */
export const agentFields = () => ({
  agentId: idForm("agt"),
  instanceId: idForm("inst"),
  name: z.string(),
  slug: z.string(),
  displayName: z.string(),
  model: z
    .union([z.string(), z.array(z.string())])
    .nullable()
    .describe("Of several, the first that can be reached answers; null for the host's default"),
  modelLimits: ModelLimitsRecord,
  tools: z
    .record(z.string(), z.enum(POLICIES))
    .describe("The owner's word on some of its tools; the others have their default policies"),
  heartbeat: z
    .object({ everySeconds: z.int(), timeZone: z.string(), activeHours: hoursOfDay().nullable() })
    .nullable()
    .describe("How often it looks what its HEARTBEAT.md asks of it"),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});

const shared = () => ({
  ...agentFields(),
  /** Present if the workspace holds more than is shown (docs/contract/api.md, Limits). */
  filesTruncated: z.literal(true).optional(),
});

/** An agent as the API shows it (docs/contract/api.md, Agents). */
export const AgentRecord = record("Agent", () => z.object({ ...shared(), files: z.record(z.string(), z.string()) }));
export const ListedAgent = record("ListedAgent", () => z.object({ ...shared(), files: z.array(z.string()) }));
export const FileRecord = record("File", () =>
  z.object({ name: z.string(), size: z.int(), updatedAt: z.iso.datetime() }),
);

export const showAgent = (agent: Agent) => ({
  agentId: agent.agentId,
  instanceId: agent.instanceId,
  name: agent.name,
  slug: agent.slug,
  displayName: agent.displayName,
  model: typeof agent.model === "object" && agent.model !== null ? [...agent.model] : agent.model,
  modelLimits: showModelLimits(agent.modelLimits),
  tools: { ...agent.tools },
  heartbeat: agent.heartbeat,
  createdAt: isoTime(agent.createdAt),
  updatedAt: isoTime(agent.updatedAt),
});

const cutMark = (isCut: boolean): { filesTruncated?: true } => (isCut ? { filesTruncated: true } : {});

export const showWithTexts = ({ agent, texts }: AgentWithFiles): z.output<typeof AgentRecord> => ({
  ...showAgent(agent),
  files: texts.files,
  ...cutMark(texts.isCut),
});

export const showListed = (agent: Agent, shown: ShownNames | undefined): z.output<typeof ListedAgent> => ({
  ...showAgent(agent),
  files: shown?.names ?? [],
  ...cutMark(shown?.isCut ?? false),
});

export const showFile = ({ name, size, updatedAt }: IndexedFile): z.output<typeof FileRecord> => ({
  name,
  size,
  updatedAt: isoTime(updatedAt),
});
