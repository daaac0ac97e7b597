import { decodeUtf8 } from "../lib/utf8.ts";
import type { InSlices } from "../limits/slices.ts";
import { createRedactor } from "../secrets/redaction.ts";

/** Takes the values of secrets out of what leaves the host. */
export interface Redaction {
  text(text: string): Promise<string>;
  /** Text or not. The same bytes where there is none in them. */
  bytes(bytes: Uint8Array): Promise<Uint8Array>;
}

const NOTHING: Redaction = { text: async (text) => text, bytes: async (bytes) => bytes };

/** By name, the values that must not get out. */
export async function createRedaction(secrets: ReadonlyMap<string, string>, inSlices: InSlices): Promise<Redaction> {
  const text = await createRedactor(secrets, inSlices);
  // What is no text is searched byte by byte, so the values have to look like that too.
  const asBytes = new Map([...secrets].map(([name, value]) => [name, Buffer.from(value).toString("latin1")]));
  const binary = await createRedactor(asBytes, inSlices);
  if (text === null || binary === null) return NOTHING;
  return {
    text,
    async bytes(bytes) {
      const plain = await inSlices(() => decodeUtf8(bytes));
      const before = plain ?? Buffer.from(bytes).toString("latin1");
      const after = await (plain === null ? binary : text)(before);
      return after === before ? bytes : Buffer.from(after, plain === null ? "latin1" : "utf8");
    },
  };
}
