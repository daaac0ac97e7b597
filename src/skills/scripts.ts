import { AppError } from "../lib/app-error.ts";
import { isObject } from "../lib/is-object.ts";
import { messageOf } from "../lib/message-of.ts";
import { UntrustedError } from "../lib/untrusted.ts";
import type { Skills } from "./skills.ts";

/** What the sandbox is to run. */
export interface CodeJob {
  /** A `script` is statements that an agent wrote; a `module` exports by default a function of the input. */
  kind: "script" | "module";
  source: string;
  /** JSON, or null for none. */
  input: string | null;
}

/** Whose code it is. */
interface Place {
  instanceId: string;
  agentId: string;
}

export interface CodeParts<Context extends Place, Result> {
  skills: Pick<Skills, "read">;
  /** A file of the agent's workspace, whole. `isTainted`: a stranger may have written it. */
  readFile(context: Context, name: string): Promise<{ text: string; isTainted: boolean }>;
  /** Runs it in the sandbox. */
  run(job: CodeJob, context: Context): Promise<Result>;
}

/** The input of `run_javascript`. */
export interface AskedCode {
  code: string;
  input?: unknown;
}

/** In place of code: a script of an installed skill. */
const SCRIPT = /^\s*skill:\s*([a-z0-9-]{1,64})\/(?:scripts\/)?(.+)/s;
const SCRIPT_FILE = /^scripts\/([^/]+\.js)$/;
/** Of a name that is repeated to whoever asked. */
const MOST_TOLD = 100;
/** Workspace files that an input may name, and their characters together. */
const MAX_FILES = 8;
const MAX_CHARACTERS = 2_000_000;

/**
 * Runs what an agent asks of `run_javascript`: code of its own, or as `skill:<skill>/<script>.js` a script of an installed
 * skill, which is read as it was installed. A value `{ "$file": "sales.csv" }` of the input becomes the text of that file, so
 * that a long file need not pass through the model (docs/contract/runtime.md, Skills). The result is tainted if one of those
 * files is. Throws what the model is to be told; `UntrustedError` if a tainted file may have a part in it.
 */
export const createCodeRunner =
  <Context extends Place, Result>({ skills, readFile, run }: CodeParts<Context, Result>) =>
  async ({ code, input }: AskedCode, context: Context): Promise<{ result: Result; isTainted: boolean }> => {
    const script = scriptOf(skills, context.instanceId, code);
    const filled = await fillFiles(input, (name) => readFile(context, name));
    const job: CodeJob = {
      kind: script === null ? "script" : "module",
      source: script ?? code,
      input: filled.input === undefined ? null : JSON.stringify(filled.input),
    };
    try {
      return { result: await run(job, context), isTainted: filled.isTainted };
    } catch (error) {
      // A script may throw, and print, what it was given.
      if (!filled.isTainted) throw error;
      throw new UntrustedError(messageOf(error), { cause: error });
    }
  };

/** The text of the script that the code names; null for code. What begins as a script's name is never run as code. */
function scriptOf(skills: Pick<Skills, "read">, instanceId: string, code: string): string | null {
  if (!/^\s*skill:/.test(code)) return null;
  const [, name, written] = SCRIPT.exec(code) ?? [];
  if (name === undefined || written === undefined) {
    throw new AppError("invalid_request", "code: expected a skill's script as skill:NAME/SCRIPT.js, or JavaScript");
  }
  const script = written.trim();
  const { files } = skills.read(instanceId, name);
  const source = SCRIPT_FILE.test(`scripts/${script}`) ? files.get(`scripts/${script}`) : undefined;
  if (source !== undefined) return source;
  const scripts = [...files.keys()].flatMap((file) => SCRIPT_FILE.exec(file)?.[1] ?? []);
  const known = scripts.length > 0 ? `it has: ${scripts.sort().join(", ")}` : "it has none";
  throw new AppError(
    "not_found",
    `the skill ${name} has no script "${script.slice(0, MOST_TOLD).toWellFormed()}"; ${known}`,
  );
}

const fileNamed = (value: unknown): string | undefined =>
  isObject(value) && Object.keys(value).length === 1 && typeof value.$file === "string" ? value.$file : undefined;

async function fillFiles(
  input: unknown,
  read: (name: string) => Promise<{ text: string; isTainted: boolean }>,
): Promise<{ input: unknown; isTainted: boolean }> {
  if (!isObject(input)) return { input, isTainted: false };
  const named = Object.entries(input).flatMap(([key, value]) => {
    const name = fileNamed(value);
    return name === undefined ? [] : [[key, name] as const];
  });
  if (named.length > MAX_FILES) throw new AppError("invalid_request", `input: expected at most ${MAX_FILES} files`);
  let left = MAX_CHARACTERS;
  let isTainted = false;
  const texts: [string, string][] = [];
  for (const [key, name] of named) {
    const file = await read(name);
    left -= file.text.length;
    if (left < 0)
      throw new AppError("invalid_request", `input: expected files of at most ${MAX_CHARACTERS} characters`);
    isTainted ||= file.isTainted;
    texts.push([key, file.text]);
  }
  return { input: { ...input, ...Object.fromEntries(texts) }, isTainted };
}
