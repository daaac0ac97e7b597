import { AppError } from "../lib/app-error.ts";
import { type JsonSchema, requireSchema } from "../lib/json-schema.ts";
import type { OutputForm } from "../models/engine.ts";

/** A function that a caller offers. */
export interface OfferedFunction {
  name: string;
  description?: string | null | undefined;
  /** Null where it takes none. */
  parameters?: JsonSchema | null | undefined;
  strict?: boolean | null | undefined;
  /** Where its parameters are in the request. */
  param: string;
}

/** Of a function without parameters. */
export const NO_INPUT: JsonSchema = { type: "object", properties: {} };

/** A call that is to be made whatever the agent thinks: its answer is JSON that says which, and of what. */
export interface ForcedCall {
  output: OutputForm;
  /** For the agent. */
  instruction: string;
  /** Why an answer that is this call ends, as OpenAI has it. */
  finish: "stop" | "tool_calls";
  /** The call that an answer is, which fits `output`. */
  callOf(answer: string): { name: string; input: string };
}

/** A call of one of these. Throws `invalid_request` if there is none, and for a schema that cannot be checked. */
export function forceCall(offered: readonly OfferedFunction[], finish: ForcedCall["finish"]): ForcedCall {
  const functions = offered.map(({ parameters, param, ...rest }) => ({
    ...rest,
    schema: requireSchema(parameters ?? NO_INPUT, param),
  }));
  const [first, second] = functions;
  if (first === undefined) {
    throw new AppError("invalid_request", "tool_choice: expected tools, of which one can be called", {
      param: "tool_choice",
    });
  }
  if (second === undefined) {
    const { name, schema, description, strict } = first;
    return {
      output: { name, schema, ...(strict != null && { strict }) },
      instruction: `Your answer is the input of a call of the function ${name}${description ? `: ${description}` : "."}`,
      finish,
      callOf: (answer) => ({ name, input: answer }),
    };
  }
  const schema = requireSchema(schemaOfOne(functions), "tools");
  return {
    output: { name: "call", schema, ...(functions.every(({ strict }) => strict === true) && { strict: true }) },
    instruction: "Your answer is the call of one function: its name, and its arguments.",
    finish,
    callOf(answer) {
      const { call } = JSON.parse(answer) as { call: { name: string; arguments: unknown } };
      return { name: call.name, input: JSON.stringify(call.arguments) };
    },
  };
}

type Callable = Pick<OfferedFunction, "name" | "description"> & { schema: JsonSchema };

/** An object with the `call`, because servers take no choice where a schema begins. */
const schemaOfOne = (functions: readonly Callable[]): JsonSchema => ({
  type: "object",
  properties: {
    call: {
      anyOf: functions.map(({ name, description, schema }, at) => ({
        ...(description && { description }),
        type: "object",
        properties: {
          name: { type: "string", enum: [name] },
          arguments: movedTo(`#/properties/call/anyOf/${at}/properties/arguments`, schema),
        },
        required: ["name", "arguments"],
        additionalProperties: false,
      })),
    },
  },
  required: ["call"],
  additionalProperties: false,
});

/** A schema as it is within another: its references lead from there. */
const movedTo = (at: string, schema: JsonSchema): JsonSchema =>
  JSON.parse(
    JSON.stringify(schema, (key, value) =>
      key === "$ref" && typeof value === "string" ? value.replace("#", () => at) : value,
    ),
  );
