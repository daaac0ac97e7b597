import { z } from "zod";
import { MAX_SECRETS } from "./secrets.ts";

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const MAX_VALUE_BYTES = 64 * 1024;

const NAME_FORM = "a name of 1 to 128 letters, digits and underscores, not beginning with a digit";
const VALUE_FORM = "text of 1 byte to 64 KiB";
const NAMES_FORM = `an object of 1 to ${MAX_SECRETS} names, each with its value`;

const isValue = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.isWellFormed() && Buffer.byteLength(value) <= MAX_VALUE_BYTES;

/**
 * The rules of docs/contract/api.md, Secrets, with messages that never contain a value. A bad name is not repeated
 * either: it may be a value in the wrong place. Not a `z.record`, which drops the name `__proto__`.
 */
const manySecrets = z
  .unknown()
  .transform((given, { issues }): ReadonlyMap<string, string> => {
    const accepted = new Map<string, string>();
    const refuse = (message: string, path: string[] = []) => {
      issues.push({ code: "custom", input: undefined, message, path });
      return z.NEVER;
    };
    if (typeof given !== "object" || given === null || Array.isArray(given)) return refuse(NAMES_FORM);
    const entries = Object.entries(given);
    if (entries.length < 1 || entries.length > MAX_SECRETS) return refuse(NAMES_FORM);
    for (const [name, value] of entries) {
      if (!NAME.test(name)) return refuse(`each key to be ${NAME_FORM}`);
      if (!isValue(value)) return refuse(VALUE_FORM, [name]);
      accepted.set(name, value);
    }
    return accepted;
  })
  .meta({
    type: "object",
    minProperties: 1,
    maxProperties: MAX_SECRETS,
    propertyNames: { pattern: NAME.source },
    additionalProperties: { type: "string", minLength: 1 },
    examples: [{ API_TOKEN: "a value that nobody reads" }],
  });

const key = z
  .string({ error: NAME_FORM })
  .regex(NAME, { error: NAME_FORM })
  .meta({ examples: ["API_TOKEN"] });
const value = z
  .string({ error: VALUE_FORM })
  .refine(isValue, { error: VALUE_FORM })
  .meta({ minLength: 1, examples: ["a value that nobody reads"] });

/** Either `{ secrets: { NAME: value, … } }` or `{ key, value }`: names and values in both cases. */
export const SecretsInput = z.lazy(() =>
  z
    .object({ secrets: manySecrets.optional(), key: key.optional(), value: value.optional() })
    .meta({ oneOf: [{ required: ["secrets"] }, { required: ["key", "value"] }] })
    .transform((input, { issues }): ReadonlyMap<string, string> => {
      const refuse = (message: string, path: string[] = []) => {
        issues.push({ code: "custom", input: undefined, message, path });
        return z.NEVER;
      };
      const single = input.key !== undefined || input.value !== undefined;
      if (single === (input.secrets !== undefined)) return refuse("either secrets, or key and value");
      if (input.secrets !== undefined) return input.secrets;
      if (input.key === undefined) return refuse(NAME_FORM, ["key"]);
      if (input.value === undefined) return refuse(VALUE_FORM, ["value"]);
      return new Map([[input.key, input.value]]);
    }),
);
