import { z } from "zod";
import { AppError } from "../lib/app-error.ts";
import { requireSchema } from "../lib/json-schema.ts";
import type { OutputForm, ToolDescription } from "../models/engine.ts";
import { type ForcedCall, forceCall, NO_INPUT, type OfferedFunction } from "./forced-call.ts";
import type { ToolChoice } from "./tool-choice.ts";

/** The caller's own functions, and the form of answers: what both surfaces have in common. */

const MAX_FUNCTIONS = 128;
/** All definitions together, in characters: they are a part of every prompt. */
const MAX_DEFINITIONS = 65_536;
const NAME = "1 to 64 letters, digits, _ and -";
const name = z
  .string({ error: NAME })
  .regex(/^[A-Za-z0-9_-]{1,64}$/, { error: NAME })
  .meta({ examples: ["get_weather"] });
const jsonObject = z.record(z.string(), z.unknown(), { error: "a JSON object" });

export const FunctionDefinition = z.lazy(() =>
  z.object(
    {
      name,
      description: z.string({ error: "text" }).nullish(),
      parameters: jsonObject.nullish().describe("JSON Schema of the arguments"),
      strict: z.boolean({ error: "true or false" }).nullish(),
    },
    { error: "a function with a name" },
  ),
);

export const functionList = <S extends z.ZodType>(one: S) =>
  z.array(one, { error: "a list of functions" }).max(MAX_FUNCTIONS, { error: `at most ${MAX_FUNCTIONS} functions` });

export const functionName = name;

export const schemaFields = {
  name,
  description: z.string().nullish(),
  schema: jsonObject.nullish().describe("JSON Schema, at most 16 KiB"),
  strict: z.boolean({ error: "true or false" }).nullish(),
};
type SchemaFields = z.output<z.ZodObject<typeof schemaFields>>;

/** The form of an answer that is to be JSON. Throws `invalid_request` for a schema that cannot be checked. */
export function outputFormOf(given: SchemaFields | null, param: string): OutputForm {
  if (given === null) return { name: "answer", schema: { type: "object" } };
  const schema = requireSchema(given.schema ?? {}, param);
  return { name: given.name, schema, ...(given.strict != null && { strict: given.strict }) };
}

type Definition = z.output<typeof FunctionDefinition>;

/** What decides whether an agent may be given functions. */
export interface FunctionRules {
  /** Whether the agent's model can call functions. */
  canCall: boolean;
  /** Whether the agent has a tool of this name, which runs inside. */
  isTool(name: string): boolean;
}

/** Throws `invalid_request` for what no model could be told apart, or at all. */
function functionsOf(definitions: readonly Definition[], { canCall, isTool }: FunctionRules): ToolDescription[] {
  const refuse = (what: string) => new AppError("invalid_request", `tools: ${what}`, { param: "tools" });
  if (definitions.length > 0 && !canCall) {
    throw refuse("the agent's model cannot call functions: give the agent a stronger model, or leave them out");
  }
  const names = new Set<string>();
  for (const { name } of definitions) {
    if (isTool(name)) {
      throw refuse(
        `${name} is the name of a tool that the agent has already; expected another name, or an agent with "tools": { "${name}": "deny" }`,
      );
    }
    if (names.has(name)) throw refuse(`expected each name once, and ${name} comes twice`);
    names.add(name);
  }
  const described = definitions.map(({ name, description, parameters }) => ({
    name,
    description: description ?? "",
    inputSchema: parameters ?? NO_INPUT,
  }));
  if (JSON.stringify(described).length > MAX_DEFINITIONS) {
    throw refuse(`expected at most ${MAX_DEFINITIONS} characters in all`);
  }
  return described;
}

/** What of the caller's functions the agent is told. */
export interface OfferedFunctions {
  functions: ToolDescription[];
  /** Null where the agent decides whether it calls one. */
  forced: ForcedCall | null;
}

/**
 * Where one must be called, nothing is asked of the model but a structured answer, so that one which can call no functions
 * serves as well. Throws `invalid_request` as `functionsOf` does, for one that is not offered, and for a schema that cannot
 * be checked.
 */
export function offerFunctions(
  offered: readonly OfferedFunction[],
  { mode, only }: ToolChoice,
  rules: FunctionRules,
): OfferedFunctions {
  if (mode === "none") return { functions: [], forced: null };
  const functions = functionsOf(offered, { ...rules, canCall: rules.canCall || mode !== "auto" });
  if (only?.some((name) => !offered.some((one) => one.name === name))) {
    throw new AppError("invalid_request", "tool_choice: expected the name of one of tools", { param: "tool_choice" });
  }
  const isAllowed = ({ name }: { name: string }) => only === null || only.includes(name);
  if (mode === "auto") return { functions: functions.filter(isAllowed), forced: null };
  // OpenAI says `stop` of a call that the model did not choose.
  return { functions: [], forced: forceCall(offered.filter(isAllowed), mode === "named" ? "stop" : "tool_calls") };
}
