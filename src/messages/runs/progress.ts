import type { LoopEvent, RunOutcome, Usage } from "../../runtime/protocol.ts";
import type { AgentEvent } from "../events/event.ts";
import type { Run } from "../schema.ts";

/** What a run in progress has come to, in memory: the database learns of it in batches. */
export interface Progress {
  /** All that it has said since it was last taken up. */
  text: string;
  /** Model calls, those before it was taken up included. */
  steps: number;
  usage: Usage;
}

export const newProgress = ({ steps }: Pick<Run, "steps">): Progress => ({
  text: "",
  steps,
  usage: { promptTokens: 0, completionTokens: 0 },
});

/** Adds what happened, and gives what is told of it, and the outcome where the run has ended. */
export function advance(
  progress: Progress,
  runId: string,
  batch: LoopEvent[],
): { told: AgentEvent[]; outcome: RunOutcome | null } {
  const told: AgentEvent[] = [];
  let outcome: RunOutcome | null = null;
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
        told.push({ type: "message.delta", runId, delta: event.text });
        break;
      case "tool.started":
        told.push({ ...event, runId, input: asJson(event.input) });
        break;
      case "tool.completed":
        told.push({ ...event, runId });
        break;
      case "ended":
        outcome = event.outcome;
    }
  }
  return { told, outcome };
}

/** A tool's input as the model wrote it: JSON where it is that, else its text. */
function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
