import { z } from "zod";
import { lazily } from "../lib/lazily.ts";
import { isOfServer } from "../lib/tool-names.ts";
import type { ToolDescription } from "../models/engine.ts";
import { nameTools } from "./search-tools.ts";
import { CALL_TOOL, type Policy, SEARCH_TOOLS, type Tool } from "./tool.ts";

/** What the owner of an agent has said, by the tools' names. */
export type Policies = Readonly<Record<string, Policy>> | null;

/** The names of the only tools that a run may call, if it may not call all of its agent's. */
type OnlyTools = readonly string[] | undefined;

/** The tools of every agent: all that the host has and can offer now. */
export interface Toolbox {
  tools: readonly Tool[];
  /**
   * What an agent's model is told of: all that is not denied. Or, where that would take too much of its context, the core
   * few, the first of its MCP servers and of the others, and a way to the rest (docs/contract/runtime.md, Searched tools).
   * `only` names all that its run may call.
   */
  offerTo(policies: Policies, contextTokens: number, only?: OnlyTools): ToolDescription[];
  /** The same for a model that can call only tools with these names. */
  offerOnly(names: readonly string[], policies: Policies): ToolDescription[];
  /** What a model that has to search is not told of. */
  searchable(policies: Policies, only?: OnlyTools): ToolDescription[];
  /** Whether an agent with these policies may call one of this name. */
  has(name: string, policies: Policies): boolean;
  find(name: string): Tool | undefined;
  /** These and more. */
  with(more: readonly Tool[]): Toolbox;
  /** JSON Schema of a tool's input. */
  schemaOf(name: string): Record<string, unknown>;
}

/** The share of a model's context that descriptions of tools may take. */
const CONTEXT_SHARE = 0.08;
/**
 * Where the core few fill that share, so many characters for tools of MCP servers, as far as they are no more than the share:
 * their owner has added them to be used, and small models do not search.
 */
const FEW_OF_SERVERS = 1_200;
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
  const allowed = (policies: Policies, only?: OnlyTools) =>
    described().filter(
      ({ tool }) =>
        isOn(tool) &&
        !isDenied(tool.name, policies) &&
        (only === undefined || isOfSearch(tool) || only.includes(tool.name)),
    );
  return {
    get tools() {
      return tools.filter(isOn);
    },
    offerTo(policies, contextTokens, only) {
      const all = allowed(policies, only);
      const usual = all.filter(({ tool }) => !isOfSearch(tool));
      const search = all.filter(({ tool }) => isOfSearch(tool));
      const room = contextTokens * CONTEXT_SHARE * CHARACTERS_A_TOKEN;
      const isAll = lengthOf(usual) <= room || search.length < SEARCH.length;
      if (isAll) return usual.map(({ description }) => description);
      const offered = coreAndMore(usual, room - lengthOf(search), Math.min(room, FEW_OF_SERVERS));
      if (offered.length === usual.length) return usual.map(({ description }) => description);
      const hidden = nameTools(usual.filter((one) => !offered.includes(one)).map(({ description }) => description));
      return [...offered, ...search].map(({ description }) =>
        description.name === SEARCH_TOOLS
          ? { ...description, description: `${description.description} There are: ${hidden}.` }
          : description,
      );
    },
    offerOnly: (names, policies) =>
      allowed(policies)
        .filter(({ tool }) => names.includes(tool.name))
        .map(({ description }) => description),
    searchable: (policies, only) =>
      allowed(policies, only)
        .filter(({ tool }) => !tool.isCore && !isOfSearch(tool))
        .map(({ description }) => description),
    find(name) {
      const tool = byName.get(name);
      return isOn(tool) ? tool : undefined;
    },
    has: (name, policies) => byName.has(name) && isOn(byName.get(name)) && !isDenied(name, policies),
    with: (more) => createToolbox([...tools, ...more]),
    schemaOf: (name) => described().find(({ tool }) => tool.name === name)?.description.inputSchema ?? {},
  };
}

interface Described {
  tool: Tool;
  description: ToolDescription;
  characters: number;
}

const lengthOf = (tools: readonly Described[]): number => tools.reduce((sum, { characters }) => sum + characters, 0);

/**
 * The core few, and as many others as fit with them in `room` characters: those of MCP servers first, which have
 * `roomOfServers` at least.
 */
function coreAndMore(tools: readonly Described[], room: number, roomOfServers: number): Described[] {
  const {
    core = [],
    ofServers = [],
    others = [],
  } = Object.groupBy(tools, ({ tool }) => (tool.isCore ? "core" : isOfServer(tool.name) ? "ofServers" : "others"));
  const left = room - lengthOf(core);
  const some = firstThatFit(ofServers, Math.max(left, roomOfServers));
  const offered = new Set([...core, ...some, ...firstThatFit(others, left - lengthOf(some))]);
  return tools.filter((one) => offered.has(one));
}

function firstThatFit(tools: readonly Described[], room: number): Described[] {
  let left = room;
  return tools.filter(({ characters }) => {
    left -= characters;
    return left >= 0;
  });
}

/** Without what some model servers refuse: the name of the dialect, and rules about the names of properties. */
function schemaOf(input: z.ZodType): Record<string, unknown> {
  const override = ({ jsonSchema }: { jsonSchema: object }) => void Reflect.deleteProperty(jsonSchema, "propertyNames");
  const { $schema: _, ...schema } = z.toJSONSchema(input, { io: "input", override });
  return schema;
}

/** Several toolboxes have the same tools. */
const descriptions = new WeakMap<Tool, ToolDescription>();

function describe(tool: Tool): ToolDescription {
  const { name, description, input, inputSchema } = tool;
  const known = descriptions.get(tool);
  if (known) return known;
  const made = { name, description, inputSchema: inputSchema ?? schemaOf(input) };
  descriptions.set(tool, made);
  return made;
}
