import type { ToolCall } from "../models/engine.ts";
import type { Durability } from "../storage/store.ts";
import type { Wait } from "../tools/tool.ts";
import type { JournalCall, LoopEvent, RunInput } from "./protocol.ts";

/** A run as the host gets it: what the worker needs, and what stays here. */
export interface HostedRun {
  agentId: string;
  conversationId: string;
  /** `local:…` or `openai:…`. */
  model: string;
  input: RunInput;
  /** Whether its prompt holds what a stranger may have written (docs/contract/runtime.md, Taint). */
  isTainted: boolean;
  /** False where nobody can be asked for an approval. */
  mayAsk: boolean;
  /** Notes that it is tainted from now on; resolves when that is committed, or the run was cancelled. */
  taint(): Promise<void>;
  /**
   * Takes what happened, in order; resolves when it is committed. `full` where a call that changes something outside is
   * about to be made. `waits` are the calls that wait, should the run end so.
   */
  sink(events: LoopEvent[], durability: Durability, waits: readonly WaitingCall[]): Promise<void>;
}

/** A call exactly as it was made, its input as it would be executed, and what it waits for. */
export interface WaitingCall {
  call: ToolCall;
  input: unknown;
  waitsFor: Wait;
}

/** A run while the host has it. What waits, and what may go ahead, is not left to the worker's word. */
export interface HeldRun {
  run: HostedRun;
  /** The commit of what was reported last. */
  committed: Promise<void>;
  isTainted: boolean;
  waits: WaitingCall[];
  /** Calls of the journal that are to be made, each once. Some were let go ahead. */
  missing: JournalCall[];
}

export const holdRun = (run: HostedRun): HeldRun => ({
  run,
  committed: Promise.resolve(),
  isTainted: run.isTainted,
  waits: [],
  missing: run.input.journal.flatMap(({ calls }) => calls).filter(({ result }) => result === null),
});

/** What this call has waited for, if it is exactly one that was let go ahead, and has not been made since. */
export function takeGoAhead({ missing }: HeldRun, { id, name, input }: ToolCall): string | undefined {
  const at = missing.findIndex((call) => call.id === id && call.name === name && call.input === input);
  return at < 0 ? undefined : missing.splice(at, 1)[0]?.goAhead;
}
