import fs from "node:fs";
import { isFileNamePart } from "./file-name.ts";

/** An entry of a folder. */
export interface FolderEntry {
  part: string;
  /**
   * `other` is left alone: links, devices, dot files and invalid names, which an operator may have put there. They can
   * block a new file.
   */
  kind: "file" | "folder" | "other";
}

/** The folder's entries, in disk order. */
export const readEntries = (path: string): FolderEntry[] =>
  fs.readdirSync(path, { withFileTypes: true }).map((entry) => entryOf(path, entry));

/** The same, read off the event loop. */
export const readEntriesSoon = async (path: string): Promise<FolderEntry[]> =>
  (await fs.promises.readdir(path, { withFileTypes: true })).map((entry) => entryOf(path, entry));

function entryOf(path: string, entry: fs.Dirent): FolderEntry {
  const { name: part } = entry;
  if (!isFileNamePart(part)) return { part, kind: "other" };
  if (entry.isFile()) return { part, kind: "file" };
  if (entry.isDirectory()) return { part, kind: "folder" };
  // Some file systems do not report an entry's type with its name.
  const stat = fs.lstatSync(`${path}/${part}`, { throwIfNoEntry: false });
  return { part, kind: stat?.isFile() ? "file" : stat?.isDirectory() ? "folder" : "other" };
}
