import fs from "node:fs";
import { isFileNamePart, MAX_NAME_PARTS } from "./file-name.ts";
import type { Folder } from "./jail-portable.ts";

export interface ListedFile {
  name: string;
  size: number;
  mtimeMs: number;
}

export interface Scan {
  /** Plain files with a name that the contract allows, sorted by name (by code unit). */
  files: ListedFile[];
  /**
   * What an operator or a tool of theirs has put beside them, and is left alone: links, devices, dot files and folders,
   * other
   * names; with `/` behind them empty folders, and those too deep for a name. They may stand in a new file's way.
   */
  others: string[];
}

type InFolder = (parts: readonly string[], use: (folder: Folder) => Entry[]) => Entry[] | null;

interface Entry {
  part: string;
  kind: "file" | "folder" | "other";
  size: number;
  mtimeMs: number;
}

/** Walks the tree in the order of the full names, up to `maxFiles`. One folder is open at a time. */
export function scanFolder(inFolder: InFolder, maxFiles: number): Scan {
  const files: ListedFile[] = [];
  const others: string[] = [];

  function walk(parts: readonly string[]): void {
    const entries = inFolder(parts, readEntries) ?? [];
    const prefix = parts.map((part) => `${part}/`).join("");
    if (entries.length === 0 && prefix !== "") others.push(prefix);
    for (const { part, kind, size, mtimeMs } of entries) {
      if (files.length >= maxFiles) return;
      if (kind === "file") files.push({ name: prefix + part, size, mtimeMs });
      else if (kind === "folder" && parts.length + 1 < MAX_NAME_PARTS) walk([...parts, part]);
      else others.push(kind === "folder" ? `${prefix}${part}/` : prefix + part);
    }
  }

  walk([]);
  return { files, others };
}

/** In the order that their full names have: a folder sorts as its name and `/`. */
function readEntries(folder: Folder): Entry[] {
  const entries: Entry[] = [];
  for (const part of fs.readdirSync(folder.path)) {
    const stat = fs.lstatSync(`${folder.path}/${part}`, { throwIfNoEntry: false });
    if (stat === undefined) continue;
    const kind = !isFileNamePart(part) ? "other" : stat.isFile() ? "file" : stat.isDirectory() ? "folder" : "other";
    entries.push({ part, kind, size: stat.size, mtimeMs: stat.mtimeMs });
  }
  const keys = new Map(entries.map((entry) => [entry, entry.kind === "folder" ? `${entry.part}/` : entry.part]));
  const keyOf = (entry: Entry) => keys.get(entry) ?? "";
  return entries.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : 0));
}
