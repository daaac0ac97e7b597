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
  const text = isUntrusted ? neutralise(output) : output;
  const shown = (part: string) => (isUntrusted ? fence(part) : part);
  const room = MAX_OUTPUT - (isUntrusted ? FENCE_ROOM : 0);
  if (text.length <= room) return { output: shown(text), isError, isUntrusted };
  let kept: string;
  try {
    const isTainted = context.isTainted || isUntrusted;
    const size = MAX_FILE_BYTES / 1024;
    const part = Buffer.byteLength(output) <= MAX_FILE_BYTES ? "all of it is" : `the first ${size} KiB of it are`;
    kept = `${part} in ${await ports.keepOutput({ ...context, isTainted }, tool, output)}: read_file shows the lines you name`;
  } catch (error) {
    kept = `the rest could not be kept: ${messageOf(error)}`;
  }
  const mark = markOf(text.length, kept);
  return { output: shown(head(text, room - mark.length)) + mark, isError, isUntrusted };
}

const markOf = (length: number, more: string): string =>
  `\n[… cut here: these are the first of ${length} characters; ${more.slice(0, 500)} …]`;

/** No more of an output than a model is given (in characters), with a visible mark; nothing is kept. */
export function cutOutput(output: string, most = MAX_OUTPUT): string {
  if (output.length <= most) return output;
  const mark = `\n[… cut here: these are the first of ${output.length} characters …]`;
  return head(output, most - mark.length) + mark;
}

/** The cut may split a surrogate pair. */
const head = (text: string, length: number): string => text.slice(0, length).toWellFormed();
