import type { ToolCall } from "../../models/engine.ts";
import { inputAsJson } from "../../runtime/call-input.ts";
import type { LoopEvent, LoopOutcome, Usage } from "../../runtime/protocol.ts";
import type { AgentEvent } from "../events/event.ts";
import type { StartedCall } from "../events/event-record.ts";
import type { Run } from "../schema.ts";

/** The progress of a run, in memory: the database is updated in batches. */
export interface Progress {
  /** The text it has written since it was last started. */
  text: string;
  /** Model calls and their tokens, of all attempts. */
  steps: number;
  usage: Usage;
  /** Whether it has read what a stranger may have written. */
  isTainted: boolean;
}

export const newProgress = ({ steps, promptTokens, completionTokens }: Run, text = ""): Progress => ({
  text,
  steps,
  usage: { promptTokens, completionTokens },
  isTainted: false,
});

/** Adds a batch of events. Returns those to report, and the outcome if the loop has ended. */
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
      case "usage":
        progress.usage.promptTokens += event.usage.promptTokens;
        progress.usage.completionTokens += event.usage.completionTokens;
        break;
      case "delta":
        progress.text += event.text;
        reported.push({ type: "message.delta", runId, delta: event.text });
        break;
      case "tool.started":
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
