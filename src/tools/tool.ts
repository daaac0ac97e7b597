import type { z } from "zod";
import type { Clock } from "../lib/clock.ts";

/** What a tool gets besides its input: whose call it is, the time, and when to give up. */
export interface ToolContext {
  instanceId: string;
  agentId: string;
  clock: Clock;
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
  run(input: z.output<S>, context: ToolContext): Promise<string>;
}

export interface ToolResult {
  output: string;
  isError: boolean;
}
