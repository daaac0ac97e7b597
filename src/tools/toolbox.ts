import { z } from "zod";
import { lazily } from "../lib/lazily.ts";
import type { ToolDescription } from "../models/engine.ts";
import { nameTools } from "./search-tools.ts";
import { CALL_TOOL, type Policy, SEARCH_TOOLS, type Tool } from "./tool.ts";

/** What the owner of an agent has said, by the tools' names. */
export type Policies = Readonly<Record<string, Policy>> | null;

/** The tools of every agent: all that the host has and can offer now. */
export interface Toolbox {
  tools: readonly Tool[];
  /**
   * What an agent's model is told of: all that is not denied. Or, where that would take too much of its context, the core
   * few and a way to the others (docs/contract/runtime.md, Searched tools).
   */
  offerTo(policies: Policies, contextTokens: number): ToolDescription[];
  /** The same for a model that can call only tools with these names. */
  offerOnly(names: readonly string[], policies: Policies): ToolDescription[];
  /** What a model that has to search is not told of. */
  searchable(policies: Policies): ToolDescription[];
  find(name: string): Tool | undefined;
  /** JSON Schema of a tool's input. */
  schemaOf(name: string): Record<string, unknown>;
}

/** The share of a model's context that descriptions of tools may take. */
const CONTEXT_SHARE = 0.05;
/** Of a description in JSON; measured: 3.6 with the embedded model's tokenizer, whose vocabulary is small. */
const CHARACTERS_A_TOKEN = 3.5;

const SEARCH = [SEARCH_TOOLS, CALL_TOOL];
const isOfSearch = ({ name }: Tool): boolean => SEARCH.includes(name);

export function createToolbox(tools: readonly Tool[]): Toolbox {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  // Schemas are made when the first run needs them: they would take milliseconds of every start.
  const described = lazily(() =>
    tools.map((tool) => {
      const description = describe(tool);
      return { tool, description, characters: JSON.stringify(description).length };
    }),
  );
  const isOn = (tool: Tool | undefined) => tool?.isOff?.() !== true;
  /** A name may be one of every object. */
  const isDenied = (name: string, policies: Policies) =>
    policies !== null && Object.hasOwn(policies, name) && policies[name] === "deny";
  const allowed = (policies: Policies) =>
    described().filter(({ tool }) => isOn(tool) && !isDenied(tool.name, policies));
  return {
    get tools() {
      return tools.filter(isOn);
    },
    offerTo(policies, contextTokens) {
      const all = allowed(policies);
      const usual = all.filter(({ tool }) => !isOfSearch(tool));
      const search = all.filter(({ tool }) => isOfSearch(tool));
      const characters = usual.reduce((sum, one) => sum + one.characters, 0);
      const isTooMuch = characters > contextTokens * CONTEXT_SHARE * CHARACTERS_A_TOKEN;
      if (!isTooMuch || search.length < SEARCH.length) return usual.map(({ description }) => description);
      const hidden = nameTools(usual.filter(({ tool }) => !tool.isCore).map(({ description }) => description));
      return [...usual.filter(({ tool }) => tool.isCore), ...search].map(({ description }) =>
        description.name === SEARCH_TOOLS
          ? { ...description, description: `${description.description} There are: ${hidden}.` }
          : description,
      );
    },
    offerOnly: (names, policies) =>
      allowed(policies)
        .filter(({ tool }) => names.includes(tool.name))
        .map(({ description }) => description),
    searchable: (policies) =>
      allowed(policies)
        .filter(({ tool }) => !tool.isCore && !isOfSearch(tool))
        .map(({ description }) => description),
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
