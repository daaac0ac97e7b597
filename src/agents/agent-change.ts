import { AppError } from "../lib/app-error.ts";
import type { ModelLimitChange, ModelLimits } from "../limits/model-limits.ts";
import type { Policy } from "../tools/tool.ts";
import type { FileChange } from "../workspace/workspace.ts";
import type { Agent, Heartbeat, ModelChoice, ToolPolicies } from "./schema.ts";
import type { IndexedFile } from "./workspace-files.ts";

export interface NewAgent {
  name: string;
  slug: string | null;
  displayName: string | null;
  useDefaults: boolean;
  files: FileChange[];
  model: ModelChoice | null;
  modelLimits?: ModelLimits | null;
  tools: PolicyChanges;
  heartbeat: Heartbeat | null;
}

export type AgentChange = Partial<Pick<Agent, "name" | "slug" | "displayName" | "model" | "heartbeat">> & {
  files?: FileChange[];
  useDefaults?: true;
  modelLimits?: ModelLimitChange;
  tools?: PolicyChanges;
};

/** A file as a change has written it. */
export interface Written {
  file: IndexedFile;
  /** False if there was a file of this name before. */
  created: boolean;
  etag: string;
}

/** Called in the transaction of the change. */
export interface AgentListener {
  updated?(agent: Agent): void;
  removed?(agent: Agent): void;
  /** Its owner has said something about its heartbeat, maybe the same as before. */
  heartbeatSet?(agent: Agent): void;
}

/** Tool name → policy; null takes the owner's word back. */
export type PolicyChanges = Readonly<Record<string, Policy | null>>;

/** Tools of an agent about which its owner may say something: of servers that are gone, their names stay. */
export const MAX_POLICIES = 200;

/** Throws `invalid_request` for the name of a tool that the host cannot have. */
export function requireTools(policies: PolicyChanges, mayHaveTool: (name: string) => boolean): void {
  const unknown = Object.keys(policies).find((name) => !mayHaveTool(name));
  if (unknown === undefined) return;
  throw new AppError(
    "invalid_request",
    `tools: expected names of tools, as GET …/tools lists them; got "${unknown.slice(0, 100)}"`,
  );
}

/** The owner's words after this change; null where none is left. Throws `conflict` where they are too many. */
export function withPolicies(before: ToolPolicies | null, changes: PolicyChanges): ToolPolicies | null {
  const all = Object.entries({ ...before, ...changes });
  const left = all.filter((entry): entry is [string, Policy] => entry[1] !== null);
  if (left.length > MAX_POLICIES) {
    throw new AppError("conflict", `tools: an agent has at most ${MAX_POLICIES} policies; take some back with null`);
  }
  return left.length === 0 ? null : Object.fromEntries(left);
}
