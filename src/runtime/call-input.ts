import { isTooDeep } from "../lib/json-depth.ts";

/**
 * A call's input has two forms: text, as models write it and tools receive it, and JSON, as events show it. Text in
 * `canonical` form survives the conversion to JSON and back unchanged.
 */
export function inputAsJson(text: string): unknown {
  // It is refused in the end, and could not be written again.
  if (isTooDeep(text)) return text;
  try {
    const value: unknown = JSON.parse(text);
    // In events, a string stands for text that is not JSON.
    return typeof value === "string" ? text : value;
  } catch {
    return text;
  }
}

export const inputAsText = (input: unknown): string => (typeof input === "string" ? input : JSON.stringify(input));

export const canonical = (text: string): string => inputAsText(inputAsJson(text));
