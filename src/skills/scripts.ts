import { AppError } from "../lib/app-error.ts";
import type { Skills } from "./skills.ts";

/** Whose code it is. */
interface Place {
  instanceId: string;
  agentId: string;
}

export interface ScriptParts<Result> {
  skills: Pick<Skills, "read">;
  /** A file of the agent's workspace, as `read_file` would give it to the agent, but whole. */
  readFile(place: Place, name: string): Promise<string>;
  /** Runs an ES module in the sandbox: calls its default export with the input, which is JSON, and gives its result. */
  runModule(source: string, input: unknown, signal: AbortSignal): Promise<Result>;
}

/** What an agent asks of `run_javascript`. */
export interface AskedCode extends Place {
  code: string;
  input: unknown;
}

/** In place of code: a script of an installed skill. */
const SCRIPT = /^\s*skill:([a-z0-9-]{1,64})\/(?:scripts\/)?([A-Za-z0-9._-]{1,100}\.js)\s*$/;
/** Workspace files that an input may name, and their characters together. */
const MAX_FILES = 8;
const MAX_CHARACTERS = 8_000_000;

/**
 * Runs what an agent asks of `run_javascript`: code of its own, or as `skill:<skill>/<script>.js` a script of an installed
 * skill, which is read as it was installed. A value `{ "$file": "sales.csv" }` of the input becomes the text of that file, so
 * that a long file need not pass through the model (docs/contract/runtime.md, Skills). The sandbox is an argument, since it
 * knows neither skills nor workspaces. Throws what the model is to be told.
 */
export const createScriptRunner =
  <Result>({ skills, readFile, runModule }: ScriptParts<Result>) =>
  async ({ code, input, ...place }: AskedCode, signal: AbortSignal): Promise<Result> => {
    const source = sourceOf(skills, place.instanceId, code);
    return runModule(source, await fillFiles(input, (name) => readFile(place, name)), signal);
  };

function sourceOf(skills: ScriptParts<unknown>["skills"], instanceId: string, code: string): string {
  const [, name, script] = SCRIPT.exec(code) ?? [];
  if (name === undefined || script === undefined) return code;
  const { files } = skills.read(instanceId, name);
  const source = files.get(`scripts/${script}`);
  if (source !== undefined) return source;
  const scripts = [...files.keys()].flatMap((file) => (/^scripts\/[^/]+\.js$/.test(file) ? [file.slice(8)] : []));
  const known = scripts.length > 0 ? `it has: ${scripts.sort().join(", ")}` : "it has none";
  throw new AppError("not_found", `the skill ${name} has no script "${script}"; ${known}`);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const fileNamed = (value: unknown): string | undefined =>
  isObject(value) && Object.keys(value).length === 1 && typeof value.$file === "string" ? value.$file : undefined;

async function fillFiles(input: unknown, read: (name: string) => Promise<string>): Promise<unknown> {
  if (!isObject(input)) return input;
  const named = Object.entries(input).filter(([, value]) => fileNamed(value) !== undefined);
  if (named.length > MAX_FILES) throw new AppError("invalid_request", `input: expected at most ${MAX_FILES} files`);
  const filled = { ...input };
  let left = MAX_CHARACTERS;
  for (const [key, value] of named) {
    const text = await read(fileNamed(value) ?? "");
    left -= text.length;
    if (left < 0)
      throw new AppError("invalid_request", `input: expected files of at most ${MAX_CHARACTERS} characters`);
    filled[key] = text;
  }
  return filled;
}
