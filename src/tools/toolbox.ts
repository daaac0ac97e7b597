import { z } from "zod";
import type { ToolDescription } from "../models/engine.ts";
import type { Tool } from "./tool.ts";

/** The tools of every agent: all that the host has. */
export interface Toolbox {
  /** As they are described to the model. */
  offered: readonly ToolDescription[];
  find(name: string): Tool | undefined;
  /** An output of a tool without the values of the instance's secrets. */
  redact(instanceId: string, output: string): Promise<string>;
}

export function createToolbox(
  tools: readonly Tool[],
  redact: Toolbox["redact"] = async (_, output) => output,
): Toolbox {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  return { offered: tools.map(describe), find: (name) => byName.get(name), redact };
}

const describe = ({ name, description, input }: Tool): ToolDescription => ({
  name,
  description,
  inputSchema: z.toJSONSchema(input, { io: "input" }) as Record<string, unknown>,
});
