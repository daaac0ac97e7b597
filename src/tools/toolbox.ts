import { z } from "zod";
import type { ToolDescription } from "../models/engine.ts";
import type { Tool } from "./tool.ts";

/** The tools of every agent: all that the host has and can offer now. */
export interface Toolbox {
  /** As they are described to the model. */
  offered: readonly ToolDescription[];
  find(name: string): Tool | undefined;
}

export function createToolbox(tools: readonly Tool[]): Toolbox {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const described = tools.map((tool) => ({ tool, description: describe(tool) }));
  const isOn = (tool: Tool | undefined) => tool?.isOff?.() !== true;
  return {
    get offered() {
      return described.filter(({ tool }) => isOn(tool)).map(({ description }) => description);
    },
    find(name) {
      const tool = byName.get(name);
      return isOn(tool) ? tool : undefined;
    },
  };
}

const describe = ({ name, description, input }: Tool): ToolDescription => ({
  name,
  description,
  inputSchema: z.toJSONSchema(input, { io: "input" }) as Record<string, unknown>,
});
