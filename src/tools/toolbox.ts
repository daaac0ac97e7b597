import { z } from "zod";
import { lazily } from "../lib/lazily.ts";
import type { ToolDescription } from "../models/engine.ts";
import type { Tool } from "./tool.ts";

/** The tools of every agent: all that the host has and can offer now. */
export interface Toolbox {
  tools: readonly Tool[];
  /** As they are described to the model. */
  offered: readonly ToolDescription[];
  find(name: string): Tool | undefined;
  /** JSON Schema of a tool's input. */
  schemaOf(name: string): Record<string, unknown>;
}

export function createToolbox(tools: readonly Tool[]): Toolbox {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  // Schemas are made when the first run needs them: they would take milliseconds of every start.
  const described = lazily(() => tools.map((tool) => ({ tool, description: describe(tool) })));
  const isOn = (tool: Tool | undefined) => tool?.isOff?.() !== true;
  return {
    get tools() {
      return tools.filter(isOn);
    },
    get offered() {
      return described()
        .filter(({ tool }) => isOn(tool))
        .map(({ description }) => description);
    },
    find(name) {
      const tool = byName.get(name);
      return isOn(tool) ? tool : undefined;
    },
    schemaOf: (name) => described().find(({ tool }) => tool.name === name)?.description.inputSchema ?? {},
  };
}

/** Without what some model servers refuse: the name of the dialect, and rules about the names of properties. */
function schemaOf(input: z.ZodType): Record<string, unknown> {
  const override = ({ jsonSchema }: { jsonSchema: object }) => void Reflect.deleteProperty(jsonSchema, "propertyNames");
  const { $schema: _, ...schema } = z.toJSONSchema(input, { io: "input", override });
  return schema;
}

const describe = ({ name, description, input }: Tool): ToolDescription => ({
  name,
  description,
  inputSchema: schemaOf(input),
});

/** The name of a tool of an agent's MCP server: the server's name, and the tool's. */
const OF_SERVER = /^[a-z0-9][a-z0-9-]{0,30}__[A-Za-z0-9_.-]{1,63}$/;

/** Whether an agent might have a tool of this name, now or once a server is added. */
export const isOfServer = (name: string): boolean => name.length <= 64 && OF_SERVER.test(name);
