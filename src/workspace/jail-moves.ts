/** Changes to the names in an open folder of the jail. None waits for the disk. */
import fs from "node:fs";
import { AppError } from "../lib/app-error.ts";
import { hasCode } from "../lib/system-error.ts";
import type { Folder } from "./jail-portable.ts";

export function makeFolder(parent: Folder, part: string): void {
  try {
    fs.mkdirSync(`${parent.path}/${part}`, { mode: 0o700 });
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  }
}

/** False if it is not empty or not a folder. */
export function removeFolder(parent: Folder, part: string): boolean {
  try {
    fs.rmdirSync(`${parent.path}/${part}`);
  } catch (error) {
    if (hasCode(error, "ENOTEMPTY", "EEXIST", "ENOTDIR")) return false;
    if (!hasCode(error, "ENOENT")) throw error;
  }
  return true;
}

/** Throws `invalid_request` if the name is a folder. A missing `source` means that the file is already in place. */
export function put(source: string, target: string, name: string): void {
  if (fs.lstatSync(source, { throwIfNoEntry: false }) === undefined) return;
  try {
    fs.renameSync(linked(source), target);
  } catch (error) {
    if (!hasCode(error, "EISDIR", "ENOTEMPTY", "EEXIST")) throw error;
    throw new AppError("invalid_request", `name: expected "${name}" to be a file, it is a folder`, { cause: error });
  }
}

/** A second link to the file, to be moved; the file itself if the file system does not support links. */
function linked(source: string): string {
  const second = `${source}.link`;
  try {
    fs.linkSync(source, second);
  } catch (error) {
    if (hasCode(error, "EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK")) return source;
    // A crash interrupted the move after the link was made.
    if (!hasCode(error, "EEXIST")) throw error;
  }
  return second;
}
