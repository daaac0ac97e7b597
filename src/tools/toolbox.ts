import { z } from "zod";
import type { ToolDescription } from "../models/engine.ts";
import type { Tool } from "./tool.ts";

/** The tools of every agent: all that the host has. */
export interface Toolbox {
  /** As they are described to the model. */
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
