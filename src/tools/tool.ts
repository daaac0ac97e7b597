import type { z } from "zod";
import type { Clock } from "../lib/clock.ts";

/** What a tool may use: the world it acts in, and when to give up. */
export interface ToolContext {
  instanceId: string;
  agentId: string;
  clock: Clock;
  /** Aborted by the tool's deadline or the run's cancel. */
  signal: AbortSignal;
}

/** Nothing that lasts, what is the agent's own (its files, its notes), or anything beyond. */
export type Changes = "nothing" | "workspace" | "outside";

/** One thing that an agent can do. A file of this folder each. */
export interface Tool<S extends z.ZodType = z.ZodType> {
  name: string;
  description: string;
  input: S;
  deadlineMs: number;
  /** The most that a call of it changes. */
  changes: Changes;
  /** What this call changes, where its input decides that: a request that only reads, say. */
  changesOf?(input: z.output<S>): Changes;
  /** Whether a stranger may have written what it gives. */
  untrustedOutput: boolean;
  run(input: z.output<S>, context: ToolContext): Promise<string>;
}

export interface ToolResult {
  output: string;
  isError: boolean;
}
