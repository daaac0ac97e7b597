import { z } from "zod";
import { decodeText } from "../workspace/workspace.ts";
import { head, MAX_OUTPUT } from "./long-output.ts";
import type { WorkspacePort } from "./ports.ts";
import type { Tool } from "./tool.ts";

/** Only ends what hangs: a slow disk is waited for. */
const DEADLINE_MS = 60_000;
/** Files that one list shows. */
const MAX_LISTED = 300;
/** Kept free for what is said about the lines that are shown. */
const NOTE_ROOM = 600;
/** Files that every later run reads as its owner's word: a tainted run asks before it changes one. */
const STEERING = new Set(["agents.md", "soul.md", "identity.md", "user.md", "tools.md", "heartbeat.md"]);

/** Disks that ignore case take `soul.md` for SOUL.md. */
const steers = ({ name }: { name: string }): boolean => STEERING.has(name.toLowerCase());

const name = () => z.string().min(1).max(1_000).describe("the file's name, such as notes/today.md");
const place = () => z.int().min(1);

// Lazy: the start of a server needs none of them.
const listInput = z.lazy(() =>
  z.object({ folder: z.string().max(1_000).describe("only what is in this folder").optional() }),
);
const readInput = z.lazy(() =>
  z.object({
    name: name(),
    fromLine: place().describe("the first line to show, counted from 1").optional(),
    fromCharacter: place().describe("where in a long first line to begin, counted from 1").optional(),
    toLine: place().describe("the last line to show").optional(),
  }),
);
const writeInput = z.lazy(() => z.object({ name: name(), text: z.string().describe("the whole text of the file") }));
const editInput = z.lazy(() =>
  z.object({
    name: name(),
    find: z.string().min(1).describe("the exact text to replace; it must occur once"),
    replace: z.string().describe("what stands there instead"),
  }),
);
const deleteInput = z.lazy(() => z.object({ name: name() }));

/** What an agent can do with its own files. */
export function workspaceTools(workspace: WorkspacePort): Tool[] {
  const listFiles: Tool<typeof listInput> = {
    name: "list_files",
    description: "Lists the files of your workspace with their sizes.",
    input: listInput,
    deadlineMs: DEADLINE_MS,
    isCore: true,
    changes: "nothing",
    untrustedOutput: false,
    async run({ folder = "" }, context) {
      const within = folder.replace(/^\.?\/+|\/+$/g, "");
      const files = await workspace.list(context, within === "" || within === "." ? null : within, MAX_LISTED + 1);
      if (files.length === 0) return within === "" ? "The workspace is empty." : `There are no files in ${within}.`;
      const lines = files.slice(0, MAX_LISTED).map(({ name, size }) => `${name} (${size} bytes)`);
      if (files.length > MAX_LISTED) lines.push(`[There are more than ${MAX_LISTED}: name a folder to see its files.]`);
      // A name, too, may be a stranger's words.
      const isUntrusted = files.some(({ isTainted }) => isTainted);
      return isUntrusted ? { untrusted: lines.join("\n") } : lines.join("\n");
    },
  };

  const readFile: Tool<typeof readInput> = {
    name: "read_file",
    description: "Reads a text file of your workspace, or some of its lines.",
    input: readInput,
    deadlineMs: DEADLINE_MS,
    isCore: true,
    changes: "nothing",
    untrustedOutput: false,
    async run({ name, ...range }, context) {
      const { bytes, isTainted } = workspace.read(context, name);
      const shown = showLines(name, bytes, range);
      return isTainted ? { untrusted: shown } : shown;
    },
  };

  const writeFile: Tool<typeof writeInput> = {
    name: "write_file",
    description:
      "Writes a text file of your workspace, whole. Read a file that exists before you replace it; to change a part of one, use edit_file.",
    input: writeInput,
    deadlineMs: DEADLINE_MS,
    isCore: true,
    changes: "workspace",
    steers,
    untrustedOutput: false,
    basisOf: ({ name }, context) => workspace.versionOf(context, name),
    async run({ name, text }, context) {
      const { created } = await workspace.write(context, name, text);
      return `${created ? "Created" : "Replaced"} ${name}, ${Buffer.byteLength(text)} bytes.`;
    },
  };

  const editFile: Tool<typeof editInput> = {
    name: "edit_file",
    description: "Replaces one part of a text file of your workspace: a text that occurs in it exactly once.",
    input: editInput,
    deadlineMs: DEADLINE_MS,
    isCore: true,
    changes: "workspace",
    steers,
    untrustedOutput: false,
    async run({ name, find, replace }, context) {
      await workspace.edit(context, name, (bytes) => replaceOnce(name, bytes, find, replace));
      return `Changed ${name}.`;
    },
  };

  const deleteFile: Tool<typeof deleteInput> = {
    name: "delete_file",
    description: "Deletes a file of your workspace.",
    input: deleteInput,
    deadlineMs: DEADLINE_MS,
    changes: "workspace",
    steers,
    untrustedOutput: false,
    basisOf: ({ name }, context) => workspace.versionOf(context, name),
    async run({ name }, context) {
      await workspace.remove(context, name);
      return `Deleted ${name}.`;
    },
  };

  return [listFiles, readFile, writeFile, editFile, deleteFile];
}

function textOf(name: string, bytes: Uint8Array): string {
  try {
    if (!bytes.includes(0)) return decodeText(bytes);
  } catch {
    // It is not UTF-8.
  }
  throw new Error(`${name} is binary, ${bytes.byteLength} bytes: only text can be read and edited`);
}

/** These lines, as many as fit an output; says which they are where they are not all, and how to read on. */
function showLines(
  name: string,
  bytes: Uint8Array,
  { fromLine = 1, fromCharacter = 1, toLine = Number.MAX_SAFE_INTEGER }: Omit<z.infer<typeof readInput>, "name">,
): string {
  const lines = textOf(name, bytes).split("\n");
  // The end of the last line is no line of its own.
  if (lines.length > 1 && lines.at(-1) === "") lines.pop();
  if (bytes.byteLength === 0) return `[${name} is empty.]`;
  if (fromLine > lines.length) throw new Error(`${name} has ${lines.length} lines; there is no line ${fromLine}`);
  if (toLine < fromLine) throw new Error(`toLine: expected ${fromLine} or more`);
  const { length } = lines[fromLine - 1] ?? "";
  // One behind the last is where an output that was cut at a line's end goes on.
  if (fromCharacter > length + 1)
    throw new Error(`line ${fromLine} of ${name} has ${length} characters; there is no character ${fromCharacter}`);
  lines[fromLine - 1] = (lines[fromLine - 1] ?? "").slice(fromCharacter - 1).toWellFormed();
  const last = Math.min(toLine, lines.length);
  const shown: string[] = [];
  let room = MAX_OUTPUT - NOTE_ROOM;
  let end = fromLine - 1;
  for (; end < last; end++) {
    const line = lines[end] ?? "";
    if (line.length + 1 > room) break;
    shown.push(line);
    room -= line.length + 1;
  }
  const begun = fromCharacter === 1 ? "" : `, from character ${fromCharacter}`;
  if (shown.length === 0) {
    const part = head(lines[end] ?? "", room);
    const next = fromCharacter + part.length;
    return `${part}\n[Line ${fromLine} of ${lines.length}${begun} is cut here: it has ${length} characters. Read on with fromLine ${fromLine}, fromCharacter ${next}.]`;
  }
  const isAll = fromLine === 1 && begun === "" && end === lines.length;
  const more = end < last ? ` Read on with fromLine ${end + 1}.` : "";
  return shown.join("\n") + (isAll ? "" : `\n[Lines ${fromLine} to ${end} of ${lines.length}${begun}.${more}]`);
}

/** Looks for bytes: in strings that repeat themselves, looking for long ones takes the product of both lengths. */
function replaceOnce(name: string, bytes: Uint8Array, find: string, replace: string): Uint8Array {
  const text = Buffer.from(textOf(name, bytes));
  const found = Buffer.from(find);
  // Half a character is in no text, though its bytes would be those of the mark for it.
  const at = find.isWellFormed() ? text.indexOf(found) : -1;
  if (at < 0) throw new Error(`the text to find is not in ${name}: read the file, and copy it exactly`);
  // Not counted: in a text that repeats itself, overlaps are as many as its characters.
  if (text.indexOf(found, at + 1) >= 0) {
    throw new Error(`the text to find occurs more than once in ${name}: give more of what is around it`);
  }
  return Buffer.concat([text.subarray(0, at), Buffer.from(replace), text.subarray(at + found.length)]);
}
