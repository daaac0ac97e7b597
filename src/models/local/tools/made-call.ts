/** A call that was made, with what came back. */
export interface MadeCall {
  name: string;
  /** JSON text of an object, if its writer kept to it. */
  input: string;
  output: string;
  isError: boolean;
}

/** Null for none that is an object: another model, or a client, may have written anything. */
export function inputOf(text: string): Record<string, unknown> | null {
  try {
    const input: unknown = JSON.parse(text);
    return typeof input === "object" && !Array.isArray(input) ? (input as Record<string, unknown> | null) : null;
  } catch {
    return null;
  }
}
