import { createSchemaCheck } from "../lib/json-schema.ts";
import type { OutputForm } from "../models/engine.ts";

/** How often a model may try again that did not answer in the form asked for (docs/contract/api.md, Structured answers). */
export const MAX_REPAIRS = 2;

/** What is wrong with an answer that should be JSON of this form; null if nothing is. */
export type OutputCheck = (text: string) => string | null;

export function createOutputCheck({ schema }: OutputForm): OutputCheck {
  const check = createSchemaCheck(schema);
  return (text) => {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return "it is not JSON";
    }
    return check(value);
  };
}
