import { z } from "zod";
import { AppError } from "../lib/app-error.ts";
import { requireSchema } from "../lib/json-schema.ts";
import type { OutputForm, ToolDescription } from "../models/engine.ts";

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

/** A choice of one function has its name where each surface says: `named`. */
export const toolChoiceOf = <S extends z.ZodType>(named: S) =>
  z.union([z.enum(["auto", "none"]), named], {
    error: "auto, none, or one of the functions by its name: otherwise an agent decides whether it calls one",
  });
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

/** A function that is to be called whatever the agent thinks: its answer is the input of that call. */
export interface ChosenFunction {
  output: OutputForm;
  /** For the agent. */
  instruction: string;
}

/** What decides whether an agent may be given functions. */
export interface FunctionRules {
  /** Whether the agent's model can call functions. */
  canCall: boolean;
  /** Whether Roost has a tool of this name, which runs inside. */
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
    if (isTool(name)) throw refuse(`${name} is the name of a tool that the agent has already; expected another name`);
    if (names.has(name)) throw refuse(`expected each name once, and ${name} comes twice`);
    names.add(name);
  }
  const described = definitions.map(({ name, description, parameters }) => ({
    name,
    description: description ?? "",
    inputSchema: parameters ?? { type: "object", properties: {} },
  }));
  if (JSON.stringify(described).length > MAX_DEFINITIONS) {
    throw refuse(`expected at most ${MAX_DEFINITIONS} characters in all`);
  }
  return described;
}

/** What of the caller's functions the agent is told. */
export interface OfferedFunctions {
  functions: ToolDescription[];
  /** Null where none is chosen by its name. */
  chosen: ChosenFunction | null;
}

/**
 * With a chosen one, nothing is asked of the model but a structured answer, so that one which can call no functions serves
 * as well. Throws `invalid_request` as `functionsOf` does, for one that is not offered, and for a schema that cannot be
 * checked.
 */
export function offerFunctions(
  offered: readonly Definition[],
  chosenName: string | null,
  rules: FunctionRules,
): OfferedFunctions {
  if (chosenName === null) return { functions: functionsOf(offered, rules), chosen: null };
  functionsOf(offered, { ...rules, canCall: true });
  const at = offered.findIndex(({ name }) => name === chosenName);
  const chosen = offered[at];
  if (chosen === undefined) {
    throw new AppError("invalid_request", "tool_choice: expected the name of one of tools", { param: "tool_choice" });
  }
  const { name, parameters, description, strict } = chosen;
  const schema = requireSchema(parameters ?? { type: "object", properties: {} }, `tools.${at}`);
  return {
    functions: [],
    chosen: {
      output: { name, schema, ...(strict != null && { strict }) },
      instruction: `Your answer is the input of a call of the function ${name}${description ? `: ${description}` : "."}`,
    },
  };
}
