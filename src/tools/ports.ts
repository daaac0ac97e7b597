import type { Target } from "./target.ts";
import type { Policy, ToolContext } from "./tool.ts";

/** Whose call it is. */
export type Whose = Pick<ToolContext, "instanceId" | "agentId" | "conversationId" | "runId">;

/** What the decision about a call asks the rest of the host. */
export interface PolicyPorts {
  /** The owner's word on this tool of the agent; undefined where there is none. */
  policyOf(agentId: string, tool: string): Policy | undefined;
  /** Whether an approval that was to be remembered covers such a call. */
  isRemembered(agentId: string, tool: string, target: Target): boolean;
  /** Whether one more call of the account's agents may wait for a person. */
  hasRoomToAsk(instanceId: string): boolean;
  /** The hash of the input that was approved, and what it was approved for; null for what is no approval. */
  approved(approvalId: string): { inputHash: string; basis: string | null } | null;
  /** The output without the values of the instance's secrets. */
  redact(instanceId: string, output: string): Promise<string>;
  /** Keeps an output that is too long as a file of the workspace. Returns its name. Throws where there is no room. */
  keepOutput(context: ToolContext, tool: string, output: string): Promise<string>;
  /** Counts a call that was decided on. */
  count(tool: string, outcome: CallOutcome): void;
  /** Notes that a call changes something outside, before it does. */
  noteChange(whose: Whose, tool: string, approvalId: string | null): Promise<void>;
}

export type CallOutcome = "done" | "failed" | "invalid" | "refused" | "asked";

/** A file as a tool reads it. */
export interface FileOfAgent {
  bytes: Uint8Array;
  /** Whether a tainted run wrote it, or a part of it. */
  isTainted: boolean;
}

export interface ListedFile {
  name: string;
  size: number;
  /** Whether a stranger may have chosen the name. */
  isTainted: boolean;
}

/**
 * The workspace of the agent whose call it is. Names, quotas and limits are checked as for a person's requests, and
 * `AppError` says what is wrong.
 */
export interface WorkspacePort {
  /** By name, of this folder or of all; at most `limit`. */
  list(whose: Whose, folder: string | null, limit: number): Promise<ListedFile[]>;
  read(whose: Whose, name: string): FileOfAgent;
  /** Changes with its content; null where there is no such file. */
  versionOf(whose: Whose, name: string): string | null;
  /** Replaces the whole file. Refuses one that exists and that this run has not read as it is now. */
  write(context: ToolContext, name: string, text: string): Promise<{ created: boolean }>;
  /** Replaces the file by what `change` makes of it, however it was changed meanwhile: it is always of what is there. */
  edit(context: ToolContext, name: string, change: (before: Uint8Array) => Uint8Array): Promise<void>;
  remove(context: ToolContext, name: string): Promise<void>;
}

export interface PlanItem {
  text: string;
  done: boolean;
}

/** Shows the plan of a run to whoever follows it. */
export type ShowPlan = (context: ToolContext, items: PlanItem[]) => Promise<void>;

/** A part of the agent's work for a copy of it; with no more tools than these, if any are named. */
export interface Task {
  title: string;
  message: string;
  tools?: string[] | undefined;
}

/**
 * The agents that a call may wait for. What is asked of them begins when the run parks; these only say whether it could
 * begin now. They throw, with a message for the model, where it could not.
 */
export interface AgentsPort {
  /** `agent` is the name, the slug or the id of another agent of the instance. */
  requireMessage(whose: Whose, agent: string, message: string): void;
  requireDelegation(whose: Whose, tasks: readonly Task[]): void;
}

/** A passage that a search of the agent's memory has found. */
export interface RememberedText {
  /** A file with its lines, or a conversation. */
  where: string;
  text: string;
  /** Milliseconds since 1970. */
  createdAt: number;
  /** Whether a stranger may have written it. */
  isUntrusted: boolean;
}

export interface MemoryPort {
  /** Best first; `degraded` says what could not be searched. */
  search(whose: Whose, query: string, limit: number): Promise<{ items: RememberedText[]; degraded: string | null }>;
  /** Adds a line to the agent's notes of the day. Returns the file's name. */
  remember(context: ToolContext, text: string): Promise<string>;
}
