import type { Agents } from "../../agents/agents.ts";
import { isUnchanged } from "../../agents/default-files.ts";
import type { Workspaces } from "../../agents/workspaces.ts";
import type { Instances } from "../../instances/instances.ts";
import type { ModelAbilities, ModelEngine, ToolDescription } from "../../models/engine.ts";
import type { HostedRun } from "../../runtime/hosted-run.ts";
import { PROMPT_FILES } from "../../runtime/prompt.ts";
import {
  canReadSkills,
  chooseFiles,
  chooseSkills,
  chooseTurns,
  roomOf,
  type SkillOutline,
  type TurnOutline,
} from "../../runtime/prompt-room.ts";
import type { JournalStep } from "../../runtime/protocol.ts";
import type { Run } from "../schema.ts";

export interface PrepareParts {
  instances: Instances;
  agents: Agents;
  workspaces: Workspaces;
  skills: {
    outline(instanceId: string): SkillOutline[];
    instructions(instanceId: string, name: string): string;
  };
  tools: readonly ToolDescription[];
  /** The host's model, for an agent that names none. */
  defaultModel: string;
  /** Throws `ModelError` for a model that the host does not have. */
  engineOf(model: string): ModelEngine;
  /** The turns up to and including the run's own message, in the order they were answered. */
  conversation(run: Run): TurnOutline[];
}

/** What a model that nobody knows may do; asking it then fails with words of its own. */
const UNKNOWN_MODEL: ModelAbilities = { contextTokens: 2048, tools: false, prompt: "full" };

/**
 * All that a run's worker needs, and of texts no more than its prompt can hold, as things stand when the run starts: a change made later is seen by the next run
 * (docs/contract/api.md, Agents). Null when the instance is not running.
 */
export function prepareRun(parts: PrepareParts, run: Run, journal: JournalStep[]): Omit<HostedRun, "sink"> | null {
  const agent = parts.agents.find(run.agentId);
  if (!agent || parts.instances.find(run.instanceId)?.status !== "running") return null;
  const model = agent.model ?? parts.defaultModel;
  const abilities = abilitiesOf(parts, model);
  const room = roomOf(abilities.contextTokens);
  const { instanceId } = run;
  const tools = abilities.tools ? [...parts.tools] : [];
  // Who can read a skill when it is needed is told its name and description only.
  const readText = canReadSkills(tools) ? null : (name: string) => parts.skills.instructions(instanceId, name);
  return {
    agentId: agent.agentId,
    model,
    input: {
      runId: run.runId,
      agentName: agent.displayName,
      files: chooseFiles(filesFor(parts.workspaces.some(agent, PROMPT_FILES), abilities), room),
      ...chooseSkills(parts.skills.outline(instanceId), room, readText),
      tools,
      model: abilities,
      ...chooseTurns(parts.conversation(run), room),
      journal,
    },
  };
}

function abilitiesOf(parts: PrepareParts, model: string): ModelAbilities {
  try {
    return parts.engineOf(model).abilities(model);
  } catch {
    return UNKNOWN_MODEL;
  }
}

/**
 * The files that a model of these abilities is told. Those that nobody has changed say nothing of this agent, and a small
 * model says them again: with them 16 of 17 fresh agents echoed their first question, and the last told its prompt. A
 * character it needs, be it the default one.
 */
export function filesFor<File extends { name: string; text: string }>(
  files: File[],
  { prompt }: ModelAbilities,
): File[] {
  if (prompt === "full") return files;
  return files.filter((file) => file.name === "SOUL.md" || !isUnchanged(file));
}
