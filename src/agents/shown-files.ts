import { AppError } from "../lib/app-error.ts";
import { decodeText, readFolder } from "../workspace/workspace.ts";
import type { Agent } from "./schema.ts";
import type { WorkspaceFiles } from "./workspace-files.ts";

/** The total text that an agent's record shows, and the files it reads; more is available file by file. */
const MAX_RECORD_BYTES = 1024 * 1024;
const MAX_RECORD_FILES = 250;
/** File names shown for one agent in a list (docs/contract/api.md, Limits). */
const MAX_NAME_BYTES = 64 * 1024;
/** File names on one page of agents; each costs its bytes plus `NAME_COST`. */
const MAX_PAGE_BYTES = 512 * 1024;
const NAME_COST = 32;
const NAMES_BATCH = 100;

/** The files shown; `isCut` if the workspace holds more. */
export interface ShownTexts {
  files: Record<string, string>;
  isCut: boolean;
}

export interface ShownNames {
  names: string[];
  isCut: boolean;
}

/**
 * Name → text of the text files, by name, as far as a record shows them. `written` are files of a change that is not in
 * the folder yet.
 */
export function showTexts(
  index: WorkspaceFiles,
  agentId: string,
  folder: string,
  written: ReadonlyMap<string, Uint8Array> = new Map(),
): ShownTexts {
  const rows = index.page(agentId, "", MAX_RECORD_FILES + 1);
  const texts: [name: string, text: string][] = [];
  let left = MAX_RECORD_BYTES;
  for (const { parts, files } of byFolder(rows.slice(0, MAX_RECORD_FILES))) {
    readFolder(folder, parts, (read) => {
      for (const { name, file, size } of files) {
        if (size > left) continue;
        const bytes = written.get(name) ?? read(file);
        const text = bytes && textOf(bytes);
        if (text === null || bytes === null) continue;
        const shown = shownBytes(bytes);
        if (shown > left) continue;
        texts.push([name, text]);
        left -= shown;
      }
    });
  }
  return { files: Object.fromEntries(texts), isCut: texts.length < rows.length };
}

/** JSON writes six characters for most control characters, of which a text has hardly any. */
function shownBytes(bytes: Uint8Array): number {
  let count = 0;
  for (const byte of bytes) if (byte < 0x20 && (byte < 0x08 || byte > 0x0d)) count++;
  return bytes.byteLength + 5 * count;
}

interface FilesOfFolder {
  parts: string[];
  files: { name: string; file: string; size: number }[];
}

/** Groups consecutive files of one folder, so that it is opened once; keeps their order. */
function byFolder(rows: readonly { name: string; size: number }[]): FilesOfFolder[] {
  const folders: FilesOfFolder[] = [];
  let path: string | undefined;
  for (const { name, size } of rows) {
    const end = name.lastIndexOf("/");
    const above = name.slice(0, Math.max(0, end));
    if (above !== path) folders.push({ parts: above === "" ? [] : above.split("/"), files: [] });
    path = above;
    folders.at(-1)?.files.push({ name, file: name.slice(end + 1), size });
  }
  return folders;
}

function textOf(bytes: Uint8Array): string | null {
  try {
    return decodeText(bytes);
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  }
}

type Sums = Pick<Agent, "agentId" | "fileCount" | "fileNameBytes">;

/** The names of each agent's files, by name, as far as one page of agents shows them. */
export function showNames(index: WorkspaceFiles, page: readonly Sums[]): Map<string, ShownNames> {
  const shares = shareOut(page);
  return new Map(page.map((agent) => [agent.agentId, namesWithin(index, agent, shares.get(agent.agentId) ?? 0)]));
}

const costOf = ({ fileCount, fileNameBytes }: Sums) => fileNameBytes + NAME_COST * fileCount;

/** Fair shares: small demands are met in full, the others share the rest equally. */
function shareOut(page: readonly Sums[]): Map<string, number> {
  let left = MAX_PAGE_BYTES;
  const needs = [...page].sort((a, b) => costOf(a) - costOf(b));
  return new Map(
    needs.map((agent, at) => {
      const share = Math.min(costOf(agent), Math.floor(left / (needs.length - at)));
      left -= share;
      return [agent.agentId, share];
    }),
  );
}

function namesWithin(index: WorkspaceFiles, { agentId, fileCount }: Sums, share: number): ShownNames {
  const names: string[] = [];
  let bytes = 0;
  while (names.length < fileCount) {
    const rows = index.page(agentId, names.at(-1) ?? "", NAMES_BATCH);
    for (const { name } of rows) {
      bytes += name.length;
      if (bytes > MAX_NAME_BYTES || bytes + NAME_COST * (names.length + 1) > share) return { names, isCut: true };
      names.push(name);
    }
    if (rows.length < NAMES_BATCH) break;
  }
  return { names, isCut: false };
}
