/**
 * Opens folders beneath a root on systems without `openat2`: checks each part before and after opening it. Refuses
 * every link that exists; against one that another process swaps in within microseconds, only the data folder's private
 * mode helps.
 */
import fs from "node:fs";
import { join } from "node:path";
import { hasCode } from "../lib/system-error.ts";

/** An open folder. The opener closes `fd`; `path` is valid until then. */
export interface Folder {
  readonly fd: number;
  readonly path: string;
}

/**
 * Opens the folder at `parts` beneath `root`, never one outside. `absent` if it or a parent does not exist, `blocked`
 * if a part is not a plain folder (a link, a file).
 */
export type OpenFolder = (root: string, parts: readonly string[]) => Folder | "absent" | "blocked";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = fs.constants;
export const FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

export const openFolderByParts: OpenFolder = (root, parts) =>
  asFound(() => {
    if (!fs.lstatSync(root).isDirectory()) return "blocked";
    let path = fs.realpathSync(root);
    for (const part of parts) {
      path = join(path, part);
      if (!fs.lstatSync(path).isDirectory()) return "blocked";
    }
    const fd = fs.openSync(path, FOLDER_FLAGS);
    let kept = false;
    try {
      kept = isStill(fd, path);
    } finally {
      if (!kept) fs.closeSync(fd);
    }
    return kept ? { fd, path } : "blocked";
  });

function isStill(fd: number, path: string): boolean {
  const opened = fs.fstatSync(fd);
  const there = fs.lstatSync(path);
  return opened.ino === there.ino && opened.dev === there.dev && fs.realpathSync(path) === path;
}

/** The result of `open`, or what its failure says about the path. */
export function asFound<T>(open: () => T): T | "absent" | "blocked" {
  try {
    return open();
  } catch (error) {
    if (hasCode(error, "ENOENT")) return "absent";
    if (hasCode(error, "ENOTDIR", "ELOOP")) return "blocked";
    throw error;
  }
}
