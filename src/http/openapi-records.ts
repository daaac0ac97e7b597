import { z } from "zod";
import { recordName } from "../lib/record.ts";
import type { Route } from "./route.ts";

/** The schemas that have a name in the document. */
export type Names = ReadonlyMap<z.ZodType, string>;

/** The records that GETs return, with their names: first those of single things, then those of lists and events. */
export function recordsOf(routes: readonly Route[]): Names {
  const answers = routes.flatMap(({ method, answer }) =>
    method === "GET" && answer instanceof z.ZodType ? answer : [],
  );
  const names = new Map<z.ZodType, string>();
  const items = answers.flatMap((answer) => pageItem(answer) ?? []);
  const events = routes.flatMap(({ events }) => events ?? []);
  for (const schema of [...answers, ...items, ...events, ...events.flatMap(formsOf)]) {
    const name = recordName(schema);
    if (name !== undefined) names.set(schema, name);
  }
  if (new Set(names.values()).size < names.size) throw new TypeError("two records have one name");
  return names;
}

/** What a record may be one of. */
function formsOf(schema: z.ZodType): readonly z.ZodType[] {
  const whole = schema instanceof z.ZodLazy ? schema.unwrap() : schema;
  return whole instanceof z.ZodUnion ? (whole.options as readonly z.ZodType[]) : [];
}

/** The schema of a list's records; null if the answer is not a list. */
function pageItem(answer: z.ZodType): z.ZodType | null {
  if (!(answer instanceof z.ZodObject)) return null;
  const { data } = answer.shape as { data?: unknown };
  return data instanceof z.ZodArray ? (data.element as z.ZodType) : null;
}
