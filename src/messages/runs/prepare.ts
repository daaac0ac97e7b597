import type { Agents } from "../../agents/agents.ts";
import { isUnchanged } from "../../agents/default-files.ts";
import type { Agent } from "../../agents/schema.ts";
import type { Workspaces } from "../../agents/workspaces.ts";
import type { Instances } from "../../instances/instances.ts";
import { fence } from "../../lib/untrusted.ts";
import type { ModelAbilities, ModelEngine, OutputForm, ToolDescription } from "../../models/engine.ts";
import { type HostedRun, NO_MESSAGES } from "../../runtime/hosted-run.ts";
import { conversationRoom, type Frame, PROMPT_FILES, tokensOfMemories } from "../../runtime/prompt.ts";
import {
  canReadSkills,
  chooseFiles,
  chooseSkills,
  chooseTurns,
  roomOf,
  type SkillOutline,
} from "../../runtime/prompt-room.ts";
import type { JournalStep } from "../../runtime/protocol.ts";
import { DELEGATE, MESSAGE_AGENT } from "../../tools/tool.ts";
import type { Toolbox } from "../../tools/toolbox.ts";
import type { Run } from "../schema.ts";
import type { PlannedCompaction } from "./compacting.ts";
import type { ReadHistory } from "./history.ts";
import type { Caused } from "./new-runs.ts";
import type { Taint } from "./taint.ts";
import type { Asked } from "./unkept-runs.ts";
import type { RunOfPrompt } from "./window.ts";

export interface PrepareParts {
  instances: Instances;
  agents: Agents;
  workspaces: Workspaces;
  skills: {
    outline(instanceId: string): SkillOutline[];
    instructions(instanceId: string, name: string): string;
  };
  toolsOf(instanceId: string): Pick<Toolbox, "offerTo" | "offerOnly">;
  /** The host's model, for an agent that names none. */
  defaultModel: string;
  /** The model that who caused a run asks for; null if the agent's is to answer. */
  modelFor(caused: Caused): string | null;
  /** What who caused a run lets it do; null for what is up to its agent. */
  boundsOf(run: RunOfPrompt): RunBounds | null;
  /** Throws `ModelError` for a model that the host does not have. */
  engineOf(model: string): ModelEngine;
  /** The conversation up to and including the run's own message. */
  history: ReadHistory;
  taint: Pick<Taint, "isMarked">;
  /** What the agent's memory has about a message, for a model that cannot search it. */
  recall(agent: Agent, message: string, conversationId: string, prompt: ModelAbilities["prompt"]): Promise<string[]>;
  /** The form of the run's answer, if it is to be JSON. */
  outputOf(runId: string): OutputForm | null;
}

/** What a run may do of what its agent may. */
export type RunBounds = Pick<HostedRun, "mayAsk" | "onlyTools">;

/** What the runtime needs for a run, and what is to be summarised before its first answer. */
export type PreparedRun = Omit<HostedRun, "sink" | "taint"> & { compaction: PlannedCompaction | null };

/** Abilities of an unknown model; calling it fails later, with a message of its own. */
const UNKNOWN_MODEL: ModelAbilities = { contextTokens: 2048, tools: false, prompt: "full" };

/**
 * Everything that a run's worker needs, with no more text than its prompt can hold. It is read when the run starts; a
 * later change affects the next run (docs/contract/api.md, Agents). Returns null if the instance is not running.
 */
export function prepareRun(parts: PrepareParts, run: Run, journal: JournalStep[]): PreparedRun | null {
  const agent = parts.agents.find(run.agentId);
  if (!agent || parts.instances.find(run.instanceId)?.status !== "running") return null;
  const prepared = preparePrompt(parts, agent, run, journal);
  const wasTainted = journal.length > 0 && parts.taint.isMarked(run.runId);
  return { ...prepared, isTainted: prepared.isTainted || wasTainted };
}

/** What the run's prompt is made of, whether its instance is running or not. */
export function preparePrompt(
  parts: PrepareParts,
  agent: Agent,
  run: RunOfPrompt & Pick<Run, "originType" | "originId">,
  journal: JournalStep[],
  extras: Asked["extras"] = {},
): PreparedRun {
  const models = modelsOf(agent, parts, run);
  // The prompt is built for the first. One that takes less refuses it as too long, and it is shortened.
  const abilities = abilitiesOf(parts, models[0], run.instanceId);
  const { instanceId, conversationId, runId } = run;
  const bounds = parts.boundsOf(run) ?? { mayAsk: run.originType !== "openai" };
  const tools = toolsFor(parts.toolsOf(instanceId), agent.tools, abilities, bounds.onlyTools);
  const room = roomOf(abilities.contextTokens);
  // Who can read a skill when it is needed is told its name and description only.
  const readsSkills = canReadSkills(tools);
  const readText = readsSkills ? null : (name: string) => parts.skills.instructions(instanceId, name);
  const output = parts.outputOf(runId);
  const strange = parts.workspaces.taintedOf(agent, PROMPT_FILES);
  const frame: Frame = {
    runId,
    agentName: agent.displayName,
    files: chooseFiles(filesFor(parts.workspaces.some(agent, PROMPT_FILES), abilities), room).map((file) =>
      strange.includes(file.name) ? { ...file, text: fence(file.text) } : file,
    ),
    ...chooseSkills(parts.skills.outline(instanceId), room, readText),
    readsSkills,
    model: abilities,
    journal,
    ...(output && { limits: { output } }),
    ...extras,
  };
  const isTold = isToldOfMemory(agent, abilities);
  const { contextTokens, prompt } = abilities;
  const toldTokens = isTold ? tokensOfMemories(contextTokens) : 0;
  const conversationTokens = conversationRoom(frame, tools) - toldTokens;
  const { compaction, turnTokens, turnMessages, isTainted, ...conversation } = parts.history(
    run,
    conversationTokens,
    abilities,
  );
  return {
    agentId: agent.agentId,
    conversationId,
    models,
    tools,
    isTainted: strange.length > 0 || isTainted,
    ...bounds,
    compaction,
    turnTokens,
    turnMessages,
    ...(isTold && {
      recall: () => parts.recall(agent, conversation.conversation.at(-1)?.text ?? "", conversationId, prompt),
    }),
    input: { ...frame, ...conversation, ...(compaction && { compaction: compaction.input }) },
  };
}

/** Models that cannot search it are told, unless their owner denies it. */
const isToldOfMemory = ({ tools: policies }: Agent, { tools, prompt }: ModelAbilities): boolean =>
  (tools === false || prompt === "short") && policies?.search_memory !== "deny";

/** All that its model can call and its owner has not denied. */
function toolsFor(
  toolbox: ReturnType<PrepareParts["toolsOf"]>,
  policies: Agent["tools"],
  { tools, contextTokens }: ModelAbilities,
  only?: RunBounds["onlyTools"],
): ToolDescription[] {
  if (typeof tools !== "boolean") return toolbox.offerOnly(tools, policies);
  return tools ? toolbox.offerTo(policies, contextTokens, only) : [];
}

/** Tools that need somebody who follows the run, or a run that can wait. */
const FOLLOWED = ["ask_user", "update_plan", MESSAGE_AGENT, DELEGATE];

/** The same for a run whose conversation its caller keeps. */
export function prepareUnkept(
  parts: Omit<PrepareParts, "history" | "taint" | "outputOf">,
  run: Run,
  { turns, isTainted, extras }: Asked,
): Omit<PreparedRun, "compaction"> | null {
  const agent = parts.agents.find(run.agentId);
  if (!agent || parts.instances.find(run.instanceId)?.status !== "running") return null;
  const history: ReadHistory = (_, room) => ({
    ...chooseTurns(turns, room),
    turnMessages: NO_MESSAGES,
    compaction: null,
    isTainted,
  });
  const kept = { history, taint: { isMarked: () => false }, outputOf: () => null };
  const { compaction: _, ...prepared } = preparePrompt({ ...parts, ...kept }, agent, run, [], extras);
  return { ...prepared, tools: prepared.tools.filter(({ name }) => !FOLLOWED.includes(name)) };
}

/** What the run's cause asks for, or else the agent's own, or else the host's: in the order in which they are tried. */
export function modelsOf(
  agent: Pick<Agent, "model">,
  { defaultModel, modelFor }: Pick<PrepareParts, "defaultModel" | "modelFor">,
  caused?: Caused,
): readonly [string, ...string[]] {
  const [first = defaultModel, ...others] = [(caused && modelFor(caused)) ?? agent.model ?? defaultModel].flat();
  return [first, ...others];
}

export function abilitiesOf(parts: Pick<PrepareParts, "engineOf">, model: string, instanceId: string): ModelAbilities {
  try {
    return parts.engineOf(model).abilities(model, instanceId);
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
