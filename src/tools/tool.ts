import type { z } from "zod";
import type { Clock } from "../lib/clock.ts";

/** What a tool gets besides its input: whose call it is, the time, and when to give up. */
export interface ToolContext {
  instanceId: string;
  agentId: string;
  clock: Clock;
  /** Set where this call has waited and may now be made: the `id` of what it waited for. It must not wait for it again. */
  goAhead?: string | undefined;
  /** Aborted by the tool's deadline or the run's cancel. */
  signal: AbortSignal;
}

/**
 * What a call changes: nothing that lasts, only what is the agent's own (its files and notes), or anything beyond that.
 */
export type Changes = "nothing" | "workspace" | "outside";

/** One thing that an agent can do. Each has its own file in this folder. */
export interface Tool<S extends z.ZodType = z.ZodType> {
  name: string;
  description: string;
  input: S;
  deadlineMs: number;
  /** The most that a call can change. */
  changes: Changes;
  /** What this call changes, if that depends on its input: a request may only read. */
  changesOf?(input: z.output<S>): Changes;
  /** Whether a stranger may have written its output. */
  untrustedOutput: boolean;
  /** True if this host cannot offer it: to a model, it is then as if it did not exist. */
  isOff?(): boolean;
  /** The output, or what to wait for. A tool that waits has done nothing yet that only its result would tell of. */
  run(input: z.output<S>, context: ToolContext): Promise<string | Waiting>;
}

export interface ToolResult {
  output: string;
  isError: boolean;
}

/** A person's approval or answer, another agent, or something slow. */
export const WAIT_KINDS = ["approval", "answer", "agent", "tool"] as const;

/**
 * What a call waits for. Its run parks (docs/contract/runtime.md, Waiting): it holds nothing until the call has its
 * result, or may be made. The `id` is unique, so that a late decision never meets another call.
 */
export interface Wait {
  kind: (typeof WAIT_KINDS)[number];
  id: string;
}

export interface Waiting {
  waitsFor: Wait;
}
