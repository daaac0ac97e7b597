import { z } from "zod";

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
  // Where one of the forms may leave out what tells them apart, a value may have several. One with a name never does.
  else if (forms.some(({ $ref, required }) => !$ref && !required?.includes(discriminator))) json.anyOf = forms;
  else return;
  delete json.oneOf;
}
