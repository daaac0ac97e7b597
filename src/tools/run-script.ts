/** A script in the sandbox, for a tool: from a job to what a model reads. */
import type { Outcome } from "../sandbox/child.ts";
import { type Job, LIMITS, SOURCE_NAME, type Thrown } from "../sandbox/protocol.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { ToolContext } from "./tool.ts";

const MAX_MESSAGE = 2_000;
const MAX_STACK_LINES = 8;
const MAX_LINE = 200;
const MEBIBYTES = LIMITS.scriptBytes / 1024 / 1024;

const WHY: Record<Extract<Outcome, { type: "killed" }>["why"], string> = {
  deadline: `the script did not end within ${LIMITS.cpuSeconds} seconds of processor time, or ${LIMITS.runMs / 1000} in all, and was stopped: look for an endless loop, or do less at once`,
  memory: `the script took more memory than it may (${MEBIBYTES} MiB) and was stopped: hold less at once`,
  output: "the script wrote far too much and was stopped: write less to the console",
  cancelled: "the script was stopped, because its run was cancelled or the host is stopping",
  crash: "the process of the script died before it had a result: run it again, and if it dies again, do less at once",
};

/**
 * Runs a job for the instance of a call. Returns its result and its console as text. Throws an error that says the same of
 * a script that failed, with the line where it did.
 */
export async function runScript(
  sandbox: Pick<Sandbox, "run">,
  job: Job,
  { instanceId, runId, signal }: Pick<ToolContext, "instanceId" | "runId" | "signal">,
): Promise<string> {
  const outcome = await sandbox.run(job, { instanceId, runId, signal });
  switch (outcome.type) {
    case "result":
      return `${outcome.json === null ? noResult(job) : `result: ${outcome.json}`}${consoleOf(outcome)}`;
    case "thrown":
      throw new Error(`${describe(outcome.error, job)}${consoleOf(outcome)}`);
    case "killed":
      throw new Error(`${WHY[outcome.why]}${consoleOf(outcome)}`);
  }
}

const noResult = ({ kind }: Job): string =>
  kind === "script"
    ? "result: none (return a value, or end with an expression)"
    : "result: none (the function returned nothing)";

function consoleOf({ console, leftOut }: Outcome): string {
  if (console === "" && leftOut === 0) return "";
  const rest = leftOut === 0 ? "" : `\n[… ${leftOut} more characters are left out …]`;
  return `\nconsole:\n${console}${rest}`;
}

function describe({ name, message, stack }: Thrown, { kind, source }: Job): string {
  const said = clip(`${name === "" ? "thrown: " : `${name}: `}${message}`, MAX_MESSAGE);
  const hint = /out of memory/.test(message) ? ` (a script has ${MEBIBYTES} MiB)` : "";
  // Who calls a skill's script cannot mend it: the message says what it expected.
  if (kind === "module") return `${said}${hint}`;
  const places = stack.split("\n").filter((line) => line.includes(`${SOURCE_NAME}:`));
  const shown = places.slice(0, MAX_STACK_LINES).map((line) => `\n    ${clip(line.trim(), MAX_LINE)}`);
  return `${said}${hint}${shown.join("")}${lineAt(places[0], source)}`;
}

/** The line of the source that the first place names. */
function lineAt(place: string | undefined, source: string): string {
  const number = Number(new RegExp(`${SOURCE_NAME}:(\\d+)`).exec(place ?? "")?.[1]);
  const line = source.split("\n")[number - 1];
  return line === undefined ? "" : `\nline ${number}: ${clip(line.trim(), MAX_LINE)}`;
}

const clip = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, max).toWellFormed()}…`;
