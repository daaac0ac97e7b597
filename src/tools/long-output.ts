import { messageOf } from "../lib/message-of.ts";
import { fence, neutralise } from "../lib/untrusted.ts";
import { MAX_FILE_BYTES } from "../workspace/workspace.ts";
import type { PolicyPorts } from "./ports.ts";
import type { RunResult } from "./run-tool.ts";
import type { ToolContext } from "./tool.ts";

/** The most characters of an output that the model gets. */
export const MAX_OUTPUT = 16_000;
/** What the marks around a stranger's text take. */
const FENCE_ROOM = 300;

/**
 * The result as the model gets it: without the values of secrets, a stranger's text between marks, and no more of a long
 * output than a model is given. The whole of that is kept as a file of the workspace, which the mark at its end names.
 */
export async function keepShort(
  { output: said, isError, isUntrusted }: RunResult,
  tool: string,
  context: ToolContext,
  ports: Pick<PolicyPorts, "keepOutput" | "redact">,
): Promise<RunResult> {
  // Before it is cut: a cut may split a value.
  const output = await ports.redact(context.instanceId, said);
  const added = (part: string) => (isUntrusted ? neutralise(part).length - part.length : 0);
  const shown = (part: string) => (isUntrusted ? fence(part) : part);
  const length = output.length + added(output);
  const room = MAX_OUTPUT - (isUntrusted ? FENCE_ROOM : 0);
  if (length <= room) return { output: shown(output), isError, isUntrusted };
  let more: (next: Place) => string;
  try {
    const isTainted = context.isTainted || isUntrusted;
    const size = MAX_FILE_BYTES / 1024;
    const part = Buffer.byteLength(output) <= MAX_FILE_BYTES ? "all of it is" : `the first ${size} KiB of it are`;
    const kept = `${part} in ${await ports.keepOutput({ ...context, isTainted }, tool, output)}`;
    more = ({ line, character }) => `${kept}: read_file goes on with fromLine ${line}, fromCharacter ${character}`;
  } catch (error) {
    const why = `the rest could not be kept: ${messageOf(error)}`;
    more = () => why;
  }
  const mark = (next: Place) => markOf(length, more(next));
  // No mark is longer: what is shown has fewer lines, and fewer characters, than this.
  const most = room - mark({ line: MAX_OUTPUT, character: MAX_OUTPUT }).length;
  const begun = head(output, most - added(head(output, most)));
  return { output: shown(begun.toWellFormed()) + mark(placeAfter(begun)), isError, isUntrusted };
}

/** Where in a text, each counted from 1: as read_file takes them. */
interface Place {
  line: number;
  character: number;
}

function placeAfter(text: string): Place {
  const lines = text.split("\n");
  return { line: lines.length, character: (lines.at(-1) ?? "").length + 1 };
}

const markOf = (length: number, more: string): string =>
  `\n[… cut here: these are the first of ${length} characters; ${more.slice(0, 500)} …]`;

/** No more of an output than a model is given (in characters), with a visible mark; nothing is kept. */
export function cutOutput(output: string, most = MAX_OUTPUT): string {
  if (output.length <= most) return output;
  const mark = `\n[… cut here: these are the first of ${output.length} characters …]`;
  return head(output, most - mark.length).toWellFormed() + mark;
}

/** The first characters, so many or one less: no surrogate pair is split. */
export const head = (text: string, length: number): string => text.slice(0, length).replace(/[\ud800-\udbff]$/, "");
