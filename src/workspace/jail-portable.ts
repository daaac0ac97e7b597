/**
 * Folders beneath a root where the system has no `openat2`: each part is looked at before the folder is opened, and once
 * more after. It refuses every link that stands there; a link that another process swaps in within those microseconds
 * is left to the owner-only modes of the data folder.
 */
import fs from "node:fs";
import { join } from "node:path";

/** An open folder. Whoever opened it closes `fd`; `path` is good until then. */
export interface Folder {
  readonly fd: number;
  readonly path: string;
}

/**
 * Opens the folder at `parts` beneath the folder `root`: `absent` where it, or one on its way, is not there; `blocked`
 * where something that is no plain folder (a link, a file) stands in its way. Never a folder outside `root`.
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

/** What `open` gives, or what its failure says about the path. */
export function asFound<T>(open: () => T): T | "absent" | "blocked" {
  try {
    return open();
  } catch (error) {
    if (hasCode(error, "ENOENT")) return "absent";
    if (hasCode(error, "ENOTDIR", "ELOOP")) return "blocked";
    throw error;
  }
}

/** True for an error of the system with one of these codes. */
export const hasCode = (error: unknown, ...codes: string[]): boolean =>
  error instanceof Error && "code" in error && typeof error.code === "string" && codes.includes(error.code);
