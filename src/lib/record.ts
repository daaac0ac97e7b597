import { z } from "zod";

const names = new WeakMap<z.ZodType, string>();

/**
 * A record of the API with its name: `/openapi.json` describes it once under this name, which is also its type in
 * clients. Its schema is made when it is first looked into, since a server's start needs none of them.
 */
export function record<S extends z.ZodType>(name: string, make: () => S): z.ZodLazy<S> {
  let made: S | undefined;
  const schema = z.lazy(() => {
    made ??= make();
    return made;
  });
  names.set(schema, name);
  return schema;
}

/** Gives one of a record's forms a name too: generators of clients would call it by its place among them. */
export function form<S extends z.ZodType>(name: string, schema: S): S {
  names.set(schema, name);
  return schema;
}

/** Undefined if the schema is neither a record nor one of its forms. */
export const recordName = (schema: z.ZodType): string | undefined => names.get(schema);
