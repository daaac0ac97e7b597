import type { Agents } from "../../agents/agents.ts";
import { isUnchanged } from "../../agents/default-files.ts";
import type { Agent } from "../../agents/schema.ts";
import type { Workspaces } from "../../agents/workspaces.ts";
import type { Instances } from "../../instances/instances.ts";
import type { ModelAbilities, ModelEngine, OutputForm, ToolDescription } from "../../models/engine.ts";
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
import type { Toolbox } from "../../tools/toolbox.ts";
import { fence } from "../../tools/untrusted.ts";
import type { Run } from "../schema.ts";
import type { Caused } from "./new-runs.ts";
import type { Taint } from "./taint.ts";
import type { Asked } from "./unkept-runs.ts";

export interface PrepareParts {
  instances: Instances;
  agents: Agents;
  workspaces: Workspaces;
  skills: {
    outline(instanceId: string): SkillOutline[];
    instructions(instanceId: string, name: string): string;
  };
  tools: Pick<Toolbox, "offerTo" | "offerOnly">;
  /** The host's model, for an agent that names none. */
  defaultModel: string;
  /** The model that who caused a run asks for; null if the agent's is to answer. */
  modelFor(caused: Caused): string | null;
  /** Throws `ModelError` for a model that the host does not have. */
  engineOf(model: string): ModelEngine;
  /** The turns up to and including the run's own message, in the order they were answered. */
  conversation(run: Run): TurnOutline[];
  taint: Pick<Taint, "isMarked" | "ofWindow">;
  /** The form of the run's answer, if it is to be JSON. */
  outputOf(runId: string): OutputForm | null;
}

/** Abilities of an unknown model; calling it fails later, with a message of its own. */
const UNKNOWN_MODEL: ModelAbilities = { contextTokens: 2048, tools: false, prompt: "full" };

/**
 * Everything that a run's worker needs, with no more text than its prompt can hold. It is read when the run starts; a
 * later change affects the next run (docs/contract/api.md, Agents). Returns null if the instance is not running.
 */
export function prepareRun(
  parts: PrepareParts,
  run: Run,
  journal: JournalStep[],
): Omit<HostedRun, "sink" | "taint"> | null {
  const agent = parts.agents.find(run.agentId);
  if (!agent || parts.instances.find(run.instanceId)?.status !== "running") return null;
  const model = modelOf(agent, parts, run);
  const abilities = abilitiesOf(parts, model);
  const room = roomOf(abilities.contextTokens);
  const { instanceId, conversationId, runId } = run;
  const turns = parts.conversation(run);
  const tools = toolsFor(parts.tools, agent.tools, abilities);
  // Who can read a skill when it is needed is told its name and description only.
  const readsSkills = canReadSkills(tools);
  const readText = readsSkills ? null : (name: string) => parts.skills.instructions(instanceId, name);
  const output = parts.outputOf(runId);
  const strange = parts.workspaces.taintedOf(agent, PROMPT_FILES);
  return {
    agentId: agent.agentId,
    conversationId,
    model,
    tools,
    isTainted:
      strange.length > 0 || parts.taint.ofWindow(conversationId) || (journal.length > 0 && parts.taint.isMarked(runId)),
    mayAsk: run.originType !== "openai",
    input: {
      runId,
      agentName: agent.displayName,
      files: chooseFiles(filesFor(parts.workspaces.some(agent, PROMPT_FILES), abilities), room).map((file) =>
        strange.includes(file.name) ? { ...file, text: fence(file.text) } : file,
      ),
      ...chooseSkills(parts.skills.outline(instanceId), room, readText),
      readsSkills,
      model: abilities,
      ...chooseTurns(turns, room),
      journal,
      ...(output && { limits: { output } }),
    },
  };
}

/** All that its model can call and its owner has not denied. */
function toolsFor(
  toolbox: PrepareParts["tools"],
  policies: Agent["tools"],
  { tools, contextTokens }: ModelAbilities,
): ToolDescription[] {
  if (typeof tools !== "boolean") return toolbox.offerOnly(tools, policies);
  return tools ? toolbox.offerTo(policies, contextTokens) : [];
}

/** Tools that need somebody who follows the run. */
const FOLLOWED = ["ask_user", "update_plan"];

/** The same for a run whose conversation its caller keeps. */
export function prepareUnkept(
  parts: Omit<PrepareParts, "conversation" | "taint" | "outputOf">,
  run: Run,
  { turns, isTainted, extras }: Asked,
): ReturnType<typeof prepareRun> {
  const taint = { ofWindow: () => isTainted, isMarked: () => false };
  const prepared = prepareRun({ ...parts, conversation: () => turns, taint, outputOf: () => null }, run, []);
  if (prepared === null) return null;
  const tools = prepared.tools.filter(({ name }) => !FOLLOWED.includes(name));
  return { ...prepared, tools, input: { ...prepared.input, ...extras } };
}

/** What the run's cause asks for, or else the agent's own, or else the host's. */
export const modelOf = (
  agent: Pick<Agent, "model">,
  { defaultModel, modelFor }: Pick<PrepareParts, "defaultModel" | "modelFor">,
  caused?: Caused,
): string => (caused && modelFor(caused)) ?? agent.model ?? defaultModel;

export function abilitiesOf(parts: Pick<PrepareParts, "engineOf">, model: string): ModelAbilities {
  try {
    return parts.engineOf(model).abilities(model);
  } catch {
    return UNKNOWN_MODEL;
  }
}

/**
 * The files that go into the prompt of a model with these abilities. Unchanged default files say nothing about this
 * agent, and a small model repeats them: with them, 16 of 17 new agents echoed their first question, and the other
 * revealed its prompt. But it needs a character, even if it is the default one.
 */
export function filesFor<File extends { name: string; text: string }>(
  files: File[],
  { prompt }: ModelAbilities,
): File[] {
  if (prompt === "full") return files;
  return files.filter((file) => file.name === "SOUL.md" || !isUnchanged(file));
}
