/**
 * A call's input has two forms: text, as models write it and tools are given it, and JSON, as events show it. Text that
 * came through `canonical` is the same again after a way through both.
 */
export function inputAsJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    // A string stands for text that is no JSON.
    return typeof value === "string" ? text : value;
  } catch {
    return text;
  }
}

export const inputAsText = (input: unknown): string => (typeof input === "string" ? input : JSON.stringify(input));

export const canonical = (text: string): string => inputAsText(inputAsJson(text));
