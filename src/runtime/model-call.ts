import type { ModelEvent, ModelRequest } from "../models/engine.ts";
import type { RunTrace } from "../traces/traces.ts";
import type { Purpose } from "./protocol.ts";

/** One call of a model, as the rest of Roost asks for it. */
export interface ModelCall extends Omit<ModelRequest, "model" | "traceparent" | "onSent" | "onRefused"> {
  /** Tried in this order (docs/contract/api.md, Agents). */
  models: readonly string[];
  agentId: string;
  purpose: Purpose;
  /** Of the run that asks, if one does. */
  tally?: RunTally;
  trace: RunTrace | null;
}

/** Whether a run has been counted: it is with its first call. */
export interface RunTally {
  isCounted: boolean;
}

/**
 * The one way to a model, whatever it is called for: it reserves what the call may take, tries the models, and records what
 * each try took. Yields as an engine does; a `usage` event comes with every answer. Throws `ModelError`, or the signal's
 * reason.
 */
export type CallModel = (call: ModelCall, signal: AbortSignal) => AsyncIterable<ModelEvent[]>;
