import { boundedSum } from "../../lib/bounded-sum.ts";
import type { ToolCall, UsageOfCall } from "../../models/engine.ts";
import { inputAsJson } from "../../runtime/call-input.ts";
import type { LoopEvent, LoopOutcome } from "../../runtime/protocol.ts";
import type { EndedCall } from "../../usage/call-log.ts";
import type { AgentEvent } from "../events/event.ts";
import type { StartedCall } from "../events/event-record.ts";
import type { Run } from "../schema.ts";
import type { PlannedCompaction } from "./compacting.ts";

/** The progress of a run, in memory: the database is updated in batches. */
export interface Progress {
  /** The text it has written since it was last started. */
  text: string;
  /** The model that has answered last, or is to answer. */
  model: string | null;
  /** Model calls and their tokens, of all attempts. */
  steps: number;
  usage: RunUsage;
  /** Whether it has read what a stranger may have written. */
  isTainted: boolean;
  /** Whether it has called tools. */
  hasCalled: boolean;
  /** Set if older messages are to be summarised first. */
  compaction: PlannedCompaction | null;
}

/** The cost is in millionths of a US dollar; null where no price is known. */
export type RunUsage = Pick<Run, "promptTokens" | "completionTokens" | "cachedTokens" | "cost">;

export const newUsage = (): RunUsage => ({ promptTokens: 0, completionTokens: 0, cachedTokens: null, cost: null });

export const newProgress = (run: Run, text = ""): Progress => {
  const { model, steps, promptTokens, completionTokens, cachedTokens, cost } = run;
  return {
    text,
    model,
    steps,
    usage: { promptTokens, completionTokens, cachedTokens, cost },
    isTainted: false,
    hasCalled: false,
    compaction: null,
  };
};

/** What of the progress is in the run's row. */
export const savedOf = ({ model, steps, usage }: Pick<Progress, "model" | "steps" | "usage">) => ({
  model,
  steps,
  ...usage,
});

/** Adds what one call took. */
export function addUsage(
  usage: RunUsage,
  { promptTokens, completionTokens, cachedTokens = 0, cost = null }: UsageOfCall,
): void {
  usage.promptTokens = boundedSum(usage.promptTokens, promptTokens);
  usage.completionTokens = boundedSum(usage.completionTokens, completionTokens);
  usage.cachedTokens = boundedSum(usage.cachedTokens ?? 0, cachedTokens);
  if (cost !== null) usage.cost = boundedSum(usage.cost ?? 0, cost);
}

/** Adds what model calls took. Returns whether there were any. */
export function addCalls(progress: Progress, calls: readonly EndedCall[]): boolean {
  for (const { call } of calls) {
    addUsage(progress.usage, call);
    if (call.outcome === "answered") progress.model = call.model;
  }
  return calls.length > 0;
}

/** Adds a batch of events, and writes what was summarised. Returns those to report, and the outcome if the loop has ended. */
export function advance(
  progress: Progress,
  runId: string,
  batch: LoopEvent[],
): { reported: AgentEvent[]; outcome: LoopOutcome | null } {
  const reported: AgentEvent[] = [];
  let outcome: LoopOutcome | null = null;
  for (const event of batch) {
    switch (event.type) {
      case "step":
        progress.steps++;
        break;
      case "delta":
        progress.text += event.text;
        reported.push({ type: "message.delta", runId, delta: event.text });
        break;
      case "compacted":
      case "compaction.failed":
        if (progress.compaction) reported.push(progress.compaction.settle(event));
        progress.compaction = null;
        break;
      case "tool.started":
        progress.hasCalled = true;
        reported.push(reportStart(runId, event));
        break;
      case "tool.completed":
        reported.push({ ...event, runId });
        break;
      case "ended":
        outcome = event.outcome;
    }
  }
  return { reported, outcome };
}

function reportStart(runId: string, event: Extract<LoopEvent, { type: "tool.started" }>): AgentEvent {
  const { type, step, toolCallId, name, input, following } = event;
  const reported = { type, runId, step, toolCallId, name, input: inputAsJson(input) };
  return following.length === 0 ? reported : { ...reported, following: following.map(asShown) };
}

const asShown = ({ id, name, input }: ToolCall): StartedCall => ({ toolCallId: id, name, input: inputAsJson(input) });
