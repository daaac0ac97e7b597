import type { z } from "zod";
import type { Clock } from "../lib/clock.ts";

/** What a tool gets besides its input: whose call it is, the time, and when to give up. */
export interface ToolContext {
  instanceId: string;
  agentId: string;
  conversationId: string;
  runId: string;
  /** Whether the run's prompt holds what a stranger may have written: so may then all that it writes. */
  isTainted: boolean;
  /** Set where the run may call only these tools, whatever its agent may. */
  onlyTools?: readonly string[] | undefined;
  clock: Clock;
  /** Set where this call has waited and may now be made: the `id` of what it waited for. It must not wait for it again. */
  goAhead?: string | undefined;
  /** Set where a person has approved this call: the `basisOf` that it was approved for. */
  basis?: string | null | undefined;
  /** Aborted by the tool's deadline or the run's cancel. */
  signal: AbortSignal;
}

/**
 * What a call changes: nothing that lasts, only what is the agent's own (its files and notes), or anything beyond that.
 */
export const CHANGES = ["nothing", "workspace", "outside"] as const;
export type Changes = (typeof CHANGES)[number];

/**
 * What the owner may say about a tool (docs/contract/runtime.md, Policies): it is not offered, a person is asked for each
 * call, it is called freely as long as the run is not tainted, or always.
 */
export const POLICIES = ["deny", "ask", "allow", "always"] as const;
export type Policy = (typeof POLICIES)[number];

/** The two tools that stand for those that a model is not told of (docs/contract/runtime.md, Searched tools). */
export const SEARCH_TOOLS = "search_tools";
export const CALL_TOOL = "call_tool";

/** The two tools that wait for agents (docs/contract/runtime.md, Agents together). */
export const MESSAGE_AGENT = "message_agent";
export const DELEGATE = "delegate";

/** One thing that an agent can do. Each has its own file in this folder. */
export interface Tool<S extends z.ZodType = z.ZodType> {
  name: string;
  description: string;
  /** Its output must be JSON: a person is shown it, and what is executed is exactly what was shown. */
  input: S;
  /** The JSON Schema that models are shown, where `input` checks less than that. */
  inputSchema?: Readonly<Record<string, unknown>>;
  /** Who has made it, if it is not one of Roost's own. */
  source?: `mcp:${string}`;
  deadlineMs: number;
  /** Offered even where there are so many tools that the others have to be searched for. */
  isCore?: true;
  /** The most that a call can change. */
  changes: Changes;
  /** What this call changes, if that depends on its input: a request may only read. */
  changesOf?(input: z.output<S>): Changes;
  /**
   * Whether this call may steer later runs, or others: it changes a persona file or a schedule, or messages another
   * agent. A tainted run asks for it, as for a change outside.
   */
  steers?(input: z.output<S>): boolean;
  /** Its policy where the owner has said nothing; else `ask` for a call that changes something outside, `allow` for others. */
  defaultPolicy?: "ask" | "allow";
  /** Whether a stranger may have written its output. */
  untrustedOutput: boolean;
  /** The version of what this call changes, as it is now: an approval holds for that alone. Null where there is none. */
  basisOf?(input: z.output<S>, context: Omit<ToolContext, "signal">): string | null;
  /** True if this host cannot offer it: to a model, it is then as if it did not exist. */
  isOff?(): boolean;
  /** The output, or what to wait for. A tool that waits has done nothing yet that only its result would tell of. */
  run(input: z.output<S>, context: ToolContext): Promise<string | UntrustedText | Waiting>;
}

/** An output that a stranger may have written, of a tool whose outputs are mostly trusted. */
export interface UntrustedText {
  untrusted: string;
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
