import { createFairCache } from "../lib/fair-cache.ts";
import type { Tool } from "./tool.ts";
import type { Toolbox } from "./toolbox.ts";

/** Instances whose tools are kept in memory: an instance may have thousands of them. */
const MAX_KEPT = 64;

/** Tools that only the agents of some instances have. */
export interface MoreTools {
  /** Changes with the instance's tools; null where it has none. */
  versionOf(instanceId: string): string | null;
  toolsOf(instanceId: string): readonly Tool[];
}

/** The tools of an instance's agents. */
export type ToolboxOf = (instanceId: string) => Toolbox;

/** The host's own tools, and after them what the instance has besides. */
export function createToolboxes(own: Toolbox, more: MoreTools): ToolboxOf {
  const kept = createFairCache<{ version: string; toolbox: Toolbox }>(MAX_KEPT, 1);
  return (instanceId) => {
    const version = more.versionOf(instanceId);
    if (version === null) return own;
    const known = kept.get(instanceId);
    if (known?.version === version) return known.toolbox;
    const toolbox = own.with(more.toolsOf(instanceId));
    kept.set(instanceId, instanceId, { version, toolbox });
    return toolbox;
  };
}
