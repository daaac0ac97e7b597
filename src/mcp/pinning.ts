import type { SeenTool, ToolDefinition } from "./schema.ts";

/** Agents have what is approved; all else waits for the owner (docs/contract/api.md, MCP servers). */
export const TOOL_STATES = ["approved", "new", "changed", "gone"] as const;
export type ToolState = (typeof TOOL_STATES)[number];

/** Approved tools that their server no longer offers, and that are remembered in case it does again. */
const MAX_GONE = 128;

export function stateOf({ hash, approvedHash, isGone }: SeenTool): ToolState {
  if (isGone) return "gone";
  if (approvedHash === null) return "new";
  return approvedHash === hash ? "approved" : "changed";
}

/** The tools of a server that is new, approved as they stand. */
export const approvedAsTheyStand = (listed: readonly ToolDefinition[]): SeenTool[] =>
  listed.map((definition) => ({ ...definition, approvedHash: definition.hash, isGone: false }));

/**
 * What is known of a server's tools once it was seen to offer these. A definition that is not the one that was approved
 * waits for the owner, and so does a tool that is new.
 */
export function seeTools(known: readonly SeenTool[], listed: readonly ToolDefinition[]): SeenTool[] {
  const before = new Map(known.map((tool) => [tool.name, tool]));
  const names = new Set(listed.map(({ name }) => name));
  const gone = known
    .filter(({ name, approvedHash }) => approvedHash !== null && !names.has(name))
    .slice(0, MAX_GONE)
    .map((tool) => ({ ...tool, isGone: true }));
  const seen = listed.map((definition) => ({
    ...definition,
    approvedHash: before.get(definition.name)?.approvedHash ?? null,
    isGone: false,
  }));
  return [...seen, ...gone];
}

/** These tools, or all, as the owner has approved them now. What is gone is forgotten. */
export const approve = (known: readonly SeenTool[], names: ReadonlySet<string> | null): SeenTool[] =>
  known.flatMap((tool) => {
    if (names !== null && !names.has(tool.name)) return [tool];
    return tool.isGone ? [] : [{ ...tool, approvedHash: tool.hash }];
  });
