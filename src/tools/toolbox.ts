import { z } from "zod";
import type { ToolDescription } from "../models/engine.ts";
import type { Tool } from "./tool.ts";

/** The tools that an agent has: all of the host's. */
export interface Toolbox {
  /** As its model is told of them. */
  offered: readonly ToolDescription[];
  find(name: string): Tool | undefined;
}

export function createToolbox(tools: readonly Tool[]): Toolbox {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  return { offered: tools.map(describe), find: (name) => byName.get(name) };
}

const describe = ({ name, description, input }: Tool): ToolDescription => ({
  name,
  description,
  inputSchema: z.toJSONSchema(input, { io: "input" }) as Record<string, unknown>,
});
