/**
 * Opens folders beneath a root on systems without `openat2`: checks each part before and after opening it. Refuses
 * every link that exists; against one that another process swaps in within microseconds, only the data folder's private
 * mode helps.
 */
import fs from "node:fs";
import { join } from "node:path";
import { hasCode } from "../lib/system-error.ts";

/** What shows that a file is still the same. */
export interface FileVersion {
  size: number;
  mtimeMs: number;
  inode: number;
  ctimeMs: number;
}

/** An open folder. The opener closes `fd`; `path` and `stat` are valid until then. */
export interface Folder {
  readonly fd: number;
  readonly path: string;
  /** Looks at an entry; null if it is no plain file. */
  stat(name: string): FileVersion | null;
}

export function statFile(path: string): FileVersion | null {
  const stat = fs.lstatSync(path, { throwIfNoEntry: false });
  if (!stat?.isFile()) return null;
  return { size: stat.size, mtimeMs: stat.mtimeMs, inode: stat.ino, ctimeMs: stat.ctimeMs };
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
    return kept ? { fd, path, stat: (name) => statFile(join(path, name)) } : "blocked";
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
