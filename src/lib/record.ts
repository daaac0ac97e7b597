import { z } from "zod";

const names = new WeakMap<z.ZodType, string>();

/**
 * A record of the API with its name: `/openapi.json` describes it once under this name, which is also its type in
 * clients. Its schema is made when it is first looked into, since a server's start needs none of them.
 */
export function record<S extends z.ZodType>(name: string, make: () => S): z.ZodLazy<S> {
  const schema = z.lazy(make);
  names.set(schema, name);
  return schema;
}

/** Undefined if the schema is not a record. */
export const recordName = (schema: z.ZodType): string | undefined => names.get(schema);
