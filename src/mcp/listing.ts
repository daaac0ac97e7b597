import { hashOfJson } from "../lib/canonical-json.ts";
import { describeHidden, findHidden, hiddenCharacters } from "../lib/hidden-characters.ts";
import { isObject } from "../lib/is-object.ts";
import { isTooDeep } from "../lib/json-depth.ts";
import type { ListedTool } from "./client.ts";
import type { ToolDefinition } from "./schema.ts";
import { exposedName } from "./tool-name.ts";

/** Tools of one server (docs/contract/api.md, MCP servers). */
export const MAX_TOOLS = 128;
/** Characters of a name, a description, and of a schema as JSON. */
const MAX_NAME = 128;
const MAX_DESCRIPTION = 8_000;
const MAX_SCHEMA = 32_000;
const MAX_SCHEMA_DEPTH = 24;
/** Of all of a server's definitions, in UTF-8. */
const MAX_BYTES = 256 * 1024;

/** Characters of what is said of them; more than is shown. */
const MAX_NOTES = 10_000;

/** What a server was seen to offer: what agents could have of it, and what was left out of that. */
export interface Listing {
  tools: ToolDefinition[];
  /** For the owner; null where nothing was left out. */
  notes: string | null;
}

export interface ListingParts {
  /** The server's name. */
  server: string;
  /** The text without the values of the instance's secrets. */
  redact(text: string): Promise<string>;
}

/** Reads what a stranger says of its tools: of what is wrong, nothing is taken. */
export async function readListing(listed: readonly unknown[], { server, redact }: ListingParts): Promise<Listing> {
  const tools: ToolDefinition[] = [];
  const notes: string[] = [];
  const names = new Set<string>();
  let room = MAX_BYTES;
  let beyond = 0;
  for (const given of listed) {
    const one = isObject(given) ? given : {};
    if (tools.length === MAX_TOOLS) {
      beyond++;
      continue;
    }
    const leaveOut = (why: string) => notes.push(`${shownName(one.name)} was left out: ${why}`);
    const read = readTool(one);
    if (typeof read === "string") {
      leaveOut(read);
      continue;
    }
    const exposed = exposedName(server, read.name);
    if (names.has(exposed)) {
      leaveOut("another tool has that name");
      continue;
    }
    const { hash: _, ...definition } = read;
    const text = JSON.stringify(definition);
    const bytes = Buffer.byteLength(text);
    if (bytes > room) {
      beyond++;
      continue;
    }
    // Also where it is left out: looking for secrets takes time.
    room -= bytes;
    if ((await redact(text)) !== text) {
      leaveOut("its definition holds the value of a secret");
      continue;
    }
    if (read.description !== oneText(one.description)) notes.push(`${read.name}: hidden characters were taken out`);
    names.add(exposed);
    tools.push(read);
  }
  if (beyond > 0) {
    notes.unshift(
      `${beyond} more tools were left out: at most ${MAX_TOOLS} are taken, of ${MAX_BYTES / 1024} KiB in all`,
    );
  }
  // A name may be the value of a secret too.
  return { tools, notes: notes.length === 0 ? null : await redact(notes.join("; ").slice(0, MAX_NOTES)) };
}

/** The definition, or why it cannot be taken. */
function readTool({ name, description, inputSchema }: ListedTool): ToolDefinition | string {
  if (typeof name !== "string" || name === "" || name.length > MAX_NAME)
    return `its name does not have 1 to ${MAX_NAME} characters`;
  if (/[^\x21-\x7e]/.test(name)) return "its name has other than visible ASCII characters";
  if (name in {}) return "its name is one of every object's";
  if (description != null && typeof description !== "string") return "its description is no text";
  const said = oneText(description);
  if (said.length > MAX_DESCRIPTION) return `its description has more than ${MAX_DESCRIPTION} characters`;
  if (!isObject(inputSchema) || inputSchema.type !== "object") return "it has no input schema of an object";
  const schema = JSON.stringify(inputSchema);
  if (schema.length > MAX_SCHEMA) return `its input schema has more than ${MAX_SCHEMA} characters`;
  if (isTooDeep(schema, MAX_SCHEMA_DEPTH))
    return `its input schema is nested more than ${MAX_SCHEMA_DEPTH} levels deep`;
  const far = farReference(inputSchema);
  if (far !== null) return `its input schema refers to ${JSON.stringify(far.slice(0, 100))}, outside of itself`;
  const hidden = findHidden(schema);
  if (hidden) return `in its input schema, ${describeHidden(hidden)}`;
  const definition = { name, description: withoutHidden(said), inputSchema };
  try {
    return { ...definition, hash: hashOfJson(definition) };
  } catch {
    return "its definition is not valid Unicode";
  }
}

const oneText = (description: unknown): string => (typeof description === "string" ? description.trim() : "");

const shownName = (name: unknown): string =>
  typeof name === "string" ? JSON.stringify(withoutHidden(name.slice(0, MAX_NAME))) : "a tool without a name";

/** The text without what a reader does not see. */
function withoutHidden(text: string): string {
  const pieces: string[] = [];
  let at = 0;
  for (const { index, character } of hiddenCharacters(text)) {
    pieces.push(text.slice(at, index));
    at = index + character.length;
  }
  return pieces.join("") + text.slice(at);
}

/** A `$ref` that would have to be fetched. */
function farReference(value: unknown): string | null {
  if (typeof value !== "object" || value === null) return null;
  for (const [key, member] of Object.entries(value)) {
    if ((key === "$ref" || key === "$dynamicRef") && typeof member === "string" && !member.startsWith("#"))
      return member;
    const found = farReference(member);
    if (found !== null) return found;
  }
  return null;
}
