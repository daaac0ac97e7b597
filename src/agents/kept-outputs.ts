import { AppError } from "../lib/app-error.ts";
import { newId } from "../lib/id.ts";
import type { PolicyPorts, WorkspacePort } from "../tools/ports.ts";
import type { ToolContext } from "../tools/tool.ts";
import { MAX_FILE_BYTES } from "../workspace/workspace.ts";

const FOLDER = "tool-output";
/** Outputs that are kept of an agent; the oldest make room. */
const MAX_KEPT = 32;
/** Files of the folder that are looked at: a person may have put others beside the outputs. */
const MAX_LISTED = 1_000;

const NAME = new RegExp(`^${FOLDER}/[0-9a-f]{32}-[A-Za-z0-9_-]{0,40}\\.txt$`);

/** Whether this is a name that the host gives, and nobody else has chosen. */
export const isKeptOutput = (name: string): boolean => NAME.test(name);

/** Writes what `isKeptOutput` says of; what agents write has other names. */
export interface OutputPort {
  keep: WorkspacePort["write"];
}

/** Keeps outputs that are too long for a prompt as files of the agent's workspace. */
export const keepOutputs =
  (files: Pick<WorkspacePort, "list" | "remove"> & OutputPort): PolicyPorts["keepOutput"] =>
  async (context, tool, output) => {
    // Ids sort by time, and so do the names.
    const id = newId("change").slice("change_".length);
    const name = `${FOLDER}/${id}-${tool.replaceAll(/[^A-Za-z0-9_-]/g, "").slice(0, 40)}.txt`;
    await makeRoom(files, context);
    await files.keep(context, name, fitting(output));
    return name;
  };

/** Removes the oldest outputs until there is room for one more. Calls of one answer do so at the same time. */
async function makeRoom(files: Pick<WorkspacePort, "list" | "remove">, context: ToolContext): Promise<void> {
  const kept = (await files.list(context, FOLDER, MAX_LISTED)).filter(({ name }) => isKeptOutput(name));
  for (const { name } of kept.slice(0, Math.max(0, kept.length - MAX_KEPT + 1))) {
    await files.remove(context, name).catch((error: unknown) => {
      if (!(error instanceof AppError) || error.code !== "not_found") throw error;
    });
  }
}

/** As much of a text as one file holds. */
function fitting(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.byteLength <= MAX_FILE_BYTES) return text;
  const note = `\n[… cut here: the output had ${bytes.byteLength} bytes …]`;
  // A character that the cut splits is left out.
  const head = new TextDecoder().decode(bytes.subarray(0, MAX_FILE_BYTES - note.length - 8), { stream: true });
  return head + note;
}
