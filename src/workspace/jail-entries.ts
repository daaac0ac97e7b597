import fs from "node:fs";
import { isFileNamePart } from "./file-name.ts";

/** What a folder holds under one name. */
export interface FolderEntry {
  part: string;
  /**
   * `other` is what an operator or a tool of theirs has put beside the files, and is left alone: links, devices, dot
   * files and folders, names that the contract does not allow. They may stand in a new file's way.
   */
  kind: "file" | "folder" | "other";
}

/** The folder's entries, in the order in which the disk has them. */
export const readEntries = (path: string): FolderEntry[] =>
  fs.readdirSync(path, { withFileTypes: true }).map((entry) => entryOf(path, entry));

/** The same, read beside the event loop. */
export const readEntriesSoon = async (path: string): Promise<FolderEntry[]> =>
  (await fs.promises.readdir(path, { withFileTypes: true })).map((entry) => entryOf(path, entry));

function entryOf(path: string, entry: fs.Dirent): FolderEntry {
  const { name: part } = entry;
  if (!isFileNamePart(part)) return { part, kind: "other" };
  if (entry.isFile()) return { part, kind: "file" };
  if (entry.isDirectory()) return { part, kind: "folder" };
  // Some disks do not tell an entry's kind with its name.
  const stat = fs.lstatSync(`${path}/${part}`, { throwIfNoEntry: false });
  return { part, kind: stat?.isFile() ? "file" : stat?.isDirectory() ? "folder" : "other" };
}
