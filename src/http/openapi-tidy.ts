import { z } from "zod";
import type { Json } from "./openapi-components.ts";

/** Takes out of a schema's JSON what says nothing to its readers, or what is not meant. */
export function tidy(json: z.core.JSONSchema.BaseSchema, schema: z.core.$ZodType): void {
  if (json.additionalProperties === false) delete json.additionalProperties;
  if (json.format === "date-time") delete json.pattern;
  if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum;
  if (json.minimum === Number.MIN_SAFE_INTEGER) delete json.minimum;
  if (!(schema instanceof z.ZodDiscriminatedUnion)) return;
  const { oneOf: forms = [], ...rest } = json;
  const [only, other] = forms;
  const { discriminator } = schema.def;
  if (only && !other) Object.assign(json, only, rest);
  else if (forms.every(({ $ref }) => $ref !== undefined)) {
    const mapping = forms.map(({ $ref }, at) => valuesOf(schema, at).map((value) => [value, $ref]));
    json.discriminator = { propertyName: discriminator, mapping: Object.fromEntries(mapping.flat()) };
    return;
  }
  // Where one of the forms may leave out what tells them apart, a value may have several. One with a name never does.
  else if (forms.some(({ $ref, required }) => !$ref && !required?.includes(discriminator))) json.anyOf = forms;
  else return;
  delete json.oneOf;
}

/** The values that tell this form from the union's others. */
const valuesOf = ({ def: { options, discriminator } }: z.ZodDiscriminatedUnion, at: number): unknown[] => [
  ...(options[at]?._zod.propValues?.[discriminator] ?? []),
];

/**
 * Makes forms of the types of a schema that has several besides null, also within it: Go's generators of clients refuse a
 * document with a list of them. (Zod makes such lists of forms at last, after `tidy`.)
 */
export const withFormsOfTypes = (schema: Json): Json =>
  JSON.parse(JSON.stringify(schema), (_, node) => {
    const { type, ...rest } = node ?? {};
    if (!Array.isArray(type) || type.filter((one) => one !== "null").length < 2) return node;
    return { ...rest, anyOf: type.map((one) => ({ type: one })) };
  });
