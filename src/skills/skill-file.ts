import { AppError } from "../lib/app-error.ts";
import { describeHidden, findHidden } from "../lib/hidden-characters.ts";

/** What a skill requires of the instance that installs it. */
export interface SkillNeeds {
  /** Names of secrets. */
  secrets: string[];
  /** Hosts in lower case, with a port unless it is the scheme's default. */
  hosts: string[];
  /** Tools that the instructions use. They are named for people and grant nothing. */
  tools: string[];
}

/** By the name of each required secret, the required hosts that it may be sent to, and no others. */
export type SecretHosts = Record<string, string[]>;

export interface Skill {
  name: string;
  description: string;
  version: string;
  license: string | null;
  tags: string[];
  requires: SkillNeeds;
  secretHosts: SecretHosts;
  /** The Markdown below the front matter. */
  instructions: string;
  /** Names of all files, `SKILL.md` among them, sorted. */
  files: string[];
}

type Mapping = Readonly<Record<string, unknown>>;

const MAX_BYTES = 256 * 1024;
/** Bounds the cost of parsing YAML: 8 Ki characters of merge keys take 45 ms. The parser bounds aliases and depth. */
const MAX_FRONT_MATTER = 8 * 1024;
const MAX_WORDS = 32;

const NAME = /^(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*$/;
const TAG = /^[\p{L}\p{N}][\p{L}\p{N}._-]{0,49}$/u;
const SECRET = /[A-Za-z_][A-Za-z0-9_]{0,127}/;
const HOST =
  /(?=[^:]{1,253}(?::|$))[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*(?::[1-9]\d{0,4})?/i;
const WHOLE_HOST = new RegExp(`^${HOST.source}$`, "i");
/** A secret for all of the skill's hosts, or for one: `NAME` or `NAME@host`. */
const SECRET_AT_HOST = new RegExp(`^(${SECRET.source})(?:@(${HOST.source}))?$`, "i");
const TOOL = /^[a-z][a-z0-9_]{0,63}$/;

const refused = (expected: string, cause?: unknown): AppError =>
  new AppError("invalid_request", `files.SKILL.md: expected ${expected}`, { cause });

const isMapping = (value: unknown): value is Mapping =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Only own entries, so that `constructor` finds nothing. An empty YAML value counts as absent. */
const entry = (mapping: Mapping, key: string): unknown =>
  Object.hasOwn(mapping, key) ? (mapping[key] ?? undefined) : undefined;

function splitFrontMatter(text: string): { frontMatter: string; body: string } {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n?|\n/);
  const isFence = (line: string | undefined): boolean => line?.trimEnd() === "---";
  const end = lines.findIndex((line, at) => at > 0 && isFence(line));
  if (!isFence(lines[0]) || end < 0) throw refused('to begin with front matter between two lines of "---"');
  return {
    frontMatter: lines.slice(1, end).join("\n"),
    body: lines
      .slice(end + 1)
      .join("\n")
      .trim(),
  };
}

function parseFrontMatter(yaml: string): Mapping {
  if (yaml.length > MAX_FRONT_MATTER) throw refused(`front matter of at most ${MAX_FRONT_MATTER} characters`);
  let value: unknown;
  try {
    value = Bun.YAML.parse(yaml);
  } catch (cause) {
    throw refused('front matter in YAML; a value that contains ": " or " #" stands in quotes', cause);
  }
  if (!isMapping(value)) throw refused('front matter of lines such as "name: my-skill"');
  return value;
}

/** One line of text: a description goes into prompts, where a line break could pass for the prompt's own structure. */
function line(mapping: Mapping, key: string, max: number, label = key): string | undefined {
  const value = entry(mapping, key);
  if (value === undefined) return undefined;
  const text = typeof value === "string" ? value.replace(/\s+/g, " ").trim() : "";
  if (text === "" || [...text].length > max || /[\p{Cc}\p{Cs}]/u.test(text)) {
    throw refused(`${label} to be text of 1 to ${max} characters`);
  }
  // In the file it may be written as an escape, which can be seen.
  if (findHidden(text)) throw refused(`${label} to be visible text, also where it is written with escapes`);
  return text;
}

/** Words separated by spaces or commas, or a YAML list of them; without duplicates, in order. */
function words(value: unknown, label: string, pattern: RegExp, example: string): string[] {
  if (value === undefined) return [];
  const list = typeof value === "string" ? value.split(/[\s,]+/).filter((word) => word !== "") : value;
  const isWord = (word: unknown): word is string => typeof word === "string" && pattern.test(word);
  if (!Array.isArray(list) || !list.every(isWord)) {
    throw refused(`${label} to be words with spaces between, such as "${example}"`);
  }
  const distinct = [...new Set(list)];
  if (distinct.length > MAX_WORDS) throw refused(`${label} to be at most ${MAX_WORDS} words`);
  return distinct;
}

/**
 * `metadata` is a map of text to text, hence `requires-hosts: "a b"`; the nested form of the API's record is read too, also
 * beside `metadata`, where that record has it.
 */
function needs(metadata: Mapping, fields: Mapping): Pick<Skill, "requires" | "secretHosts"> {
  const nested = [nestedNeeds(metadata, "metadata.requires"), nestedNeeds(fields, "requires")];
  const need = (kind: keyof SkillNeeds, pattern: RegExp, example: string): string[] => {
    const label = `requires-${kind}`;
    const values = [entry(metadata, label), entry(fields, label), ...nested.map((record) => entry(record, kind))];
    return words(
      values.find((value) => value !== undefined),
      `metadata.${label}`,
      pattern,
      example,
    );
  };
  const named = need("hosts", WHOLE_HOST, "api.example.com localhost:8080").map((host) => host.toLowerCase());
  const hosts = [...new Set(named)];
  const tools = need("tools", TOOL, "web_fetch read_file");
  const secretHosts = tieSecrets(need("secrets", SECRET_AT_HOST, "EXAMPLE_TOKEN@api.example.com"), hosts);
  return { requires: { secrets: Object.keys(secretHosts), hosts, tools }, secretHosts };
}

function nestedNeeds(mapping: Mapping, label: string): Mapping {
  const nested = entry(mapping, "requires") ?? {};
  if (isMapping(nested)) return nested;
  throw refused(`${label} to be a map of secrets, hosts and tools, each with words such as "api.example.com"`);
}

/** `NAME` may go to all of the hosts, `NAME@host` to that one; a secret of several hosts is named once for each. */
function tieSecrets(declared: readonly string[], hosts: readonly string[]): SecretHosts {
  const tied = new Map<string, string[]>();
  for (const word of declared) {
    const [, name = "", given] = SECRET_AT_HOST.exec(word) ?? [];
    const host = given?.toLowerCase();
    if (host !== undefined && !hosts.includes(host)) {
      throw refused(`the host of ${word} in metadata.requires-secrets to be one of metadata.requires-hosts`);
    }
    const allowed = host === undefined ? hosts : [host];
    tied.set(name, [...new Set([...(tied.get(name) ?? []), ...allowed])]);
  }
  return Object.fromEntries(tied);
}

/** Accepts a number as text: an unquoted `version: 1.0` is common. */
function version(metadata: Mapping, fields: Mapping): string {
  const value = entry(metadata, "version") ?? entry(fields, "version");
  const text = typeof value === "number" ? String(value) : value;
  return line({ version: text }, "version", 50, "metadata.version") ?? "1.0.0";
}

/** What a person does not see when reading a skill must not reach the model that follows it. */
function refuseHidden(texts: ReadonlyMap<string, string>): void {
  for (const [name, text] of texts) {
    const hidden = findHidden(text);
    if (hidden)
      throw new AppError("invalid_request", `files.${name}: expected only visible text; ${describeHidden(hidden)}`);
  }
}

/** The Markdown below the front matter of a SKILL.md that was read before. */
export const instructionsOf = (text: string): string => splitFrontMatter(text).body;

/**
 * Reads a skill from its files, as specified at agentskills.io; unknown keys are ignored. `folderName` is given for a
 * skill in a folder, whose name must be the same. Throws `invalid_request`, naming what was expected.
 */
export function parseSkill(
  files: ReadonlyMap<string, string> | Readonly<Record<string, string>>,
  folderName?: string,
): Skill {
  const texts = files instanceof Map ? files : new Map(Object.entries(files));
  const text = texts.get("SKILL.md");
  if (typeof text !== "string") throw refused("the skill's front matter and instructions");
  if (Buffer.byteLength(text) > MAX_BYTES) throw refused(`at most ${MAX_BYTES} bytes`);
  refuseHidden(texts);

  const { frontMatter, body } = splitFrontMatter(text);
  const fields = parseFrontMatter(frontMatter);
  const name = entry(fields, "name");
  if (typeof name !== "string" || !NAME.test(name)) {
    throw refused("name to be 1 to 64 of a-z and 0-9, with single hyphens between them");
  }
  if (folderName !== undefined && name !== folderName) throw refused(`name to be that of the folder, "${folderName}"`);
  const description = line(fields, "description", 1024);
  if (description === undefined) throw refused("description to say what the skill does and when to use it");
  line(fields, "compatibility", 500);
  const allowedTools = entry(fields, "allowed-tools");
  if (typeof allowedTools !== "string") words(allowedTools, "allowed-tools", /\S/, "Read Bash(git:*)");
  const metadata = entry(fields, "metadata") ?? {};
  if (!isMapping(metadata)) throw refused("metadata to be a map such as \"version: '1.0.0'\"");

  return {
    name,
    description,
    version: version(metadata, fields),
    license: line(fields, "license", 500) ?? null,
    tags: words(entry(metadata, "tags"), "metadata.tags", TAG, "writing meetings"),
    ...needs(metadata, fields),
    instructions: body,
    files: [...texts.keys()].sort(),
  };
}
