import { createHash } from "node:crypto";

/** What model servers take as a name of a function. */
const PLAIN = /^[A-Za-z0-9_-]{1,64}$/;
const MAX_NAME = 64;
const MARK_CHARACTERS = 8;

/**
 * The name by which agents have a server's tool: `server__tool`. Where that is too long, or has other characters, a hash of
 * the whole ends it, so that no two are the same.
 */
export function exposedName(server: string, tool: string): string {
  const whole = `${server}__${tool}`;
  if (PLAIN.test(whole)) return whole;
  const mark = createHash("sha256").update(whole).digest("hex").slice(0, MARK_CHARACTERS);
  const shown = whole.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, MAX_NAME - MARK_CHARACTERS - 1);
  return `${shown}_${mark}`;
}
