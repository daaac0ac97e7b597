/**
 * Files beneath a root that nobody leaves: not by `..`, by an absolute name, by a link anywhere on the way, nor by
 * swapping a folder for a link meanwhile. All calls are synchronous: files are small and callers hold a transaction.
 * Only plain files exist here. A link, a FIFO or a device is never read, and reads as absent.
 */
// The default import, so that a test can stop it at any call to the system.
import fs from "node:fs";
import { AppError } from "../lib/app-error.ts";
import { parseFileName, type Step } from "./file-name.ts";
import { type FolderEntry, readEntries, readEntriesSoon } from "./jail-entries.ts";
import { probeLinux } from "./jail-linux.ts";
import { type Folder, hasCode, type OpenFolder, openFolderByParts } from "./jail-portable.ts";

export interface FileStat {
  size: number;
  mtimeMs: number;
}

export interface FileContent {
  bytes: Buffer;
  mtimeMs: number;
}

export interface Jail {
  /** Null where there is no such plain file, or none that this process may read. Throws `invalid_request` for one of more than `maxBytes`. */
  read(name: string, maxBytes: number): FileContent | null;
  /** The plain files of the root that are there, of at most `maxBytes`, in the order of the names; opened in one go. */
  readRoot(names: readonly string[], maxBytes: number): { name: string; bytes: Buffer }[];
  stat(name: string): FileStat | null;
  /** The same of many files of one folder, opened in one go. */
  statAll(folder: readonly string[], files: readonly string[]): (FileStat | null)[];
  /**
   * Moves files of the same disk into the jail, replacing what is there and making the folders on the way; on disk when
   * it returns. One whose `source` is gone was moved before. Throws `invalid_request` where a folder stands in a file's place or the other way round.
   */
  moveIn(moves: readonly { source: string; name: string }[]): void;
  /** False where there was no such plain file. Folders left empty go with it, up to the root. */
  remove(name: string): boolean;
  /** The first thing on the way to this file that keeps it from being written: a folder of its name, or no folder before it. */
  inTheWay(name: string): Step | null;
  /** True where the folder holds these files and nothing else, and is not empty: removing them removes it. */
  holdsOnly(folder: string, names: ReadonlySet<string>): boolean;
  /** What the folder at these parts holds; `[]` where there is none. */
  entries(parts: readonly string[]): FolderEntry[];
  /** The same of a folder that may hold very much: the disk is read beside everything else. */
  entriesSoon(parts: readonly string[]): Promise<FolderEntry[]>;
}

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = fs.constants;

let probed: OpenFolder | undefined;
const systemOpenFolder = (): OpenFolder => {
  probed ??= probeLinux() ?? openFolderByParts;
  return probed;
};

/** How paths are held in the jail on this machine, for `doctor`: by the kernel, or by looking at each part. */
export const jailLevel = (): "openat2" | "portable" =>
  systemOpenFolder() === openFolderByParts ? "portable" : "openat2";

/** A jail on the folder at `root`, which need not be there yet: then it holds nothing, and writing throws. */
export function openJail(root: string, openFolder: OpenFolder = systemOpenFolder()): Jail {
  /** What `use` makes of the open folder at `parts`; null where there is none to be had. */
  function inFolder<T>(parts: readonly string[], use: (folder: Folder) => T): T | null {
    const folder = openFolder(root, parts);
    return folder === "absent" || folder === "blocked" ? null : closing(folder, use);
  }

  /** As `inFolder`, and makes the folders that are missing. */
  function inMadeFolder(parts: readonly string[], use: (folder: Folder) => void): void {
    let folder = openFolder(root, parts);
    const last = parts.at(-1);
    if (folder === "absent" && last !== undefined) {
      inMadeFolder(parts.slice(0, -1), (parent) => makeFolder(parent, last));
      folder = openFolder(root, parts);
    }
    if (folder === "absent") throw new Error(`the folder ${root} is gone`);
    if (folder === "blocked") {
      throw new AppError("invalid_request", `name: expected "${parts.join("/")}" to be a folder`);
    }
    closing(folder, use);
  }

  function moveIn(moves: readonly { source: string; name: string }[]): void {
    const byFolder = Map.groupBy(moves, ({ name }) => name.slice(0, Math.max(0, name.lastIndexOf("/"))));
    for (const group of byFolder.values()) {
      const [first] = group;
      if (first === undefined) continue;
      inMadeFolder(splitName(first.name).folder, (folder) => {
        for (const { source, name } of group) rename(source, `${folder.path}/${splitName(name).file}`, name);
        fs.fsyncSync(folder.fd);
      });
    }
  }

  function removeEmptyFolders(parts: readonly string[]): void {
    const last = parts.at(-1);
    if (last === undefined) return;
    const above = parts.slice(0, -1);
    const isRemoved = inFolder(above, (parent) => removeFolder(parent, last));
    if (isRemoved !== false) removeEmptyFolders(above);
  }

  return {
    read(name, maxBytes) {
      const { folder, file } = splitName(name);
      const content = inFolder(folder, ({ path }) => readFile(`${path}/${file}`, maxBytes));
      if (content !== "too large") return content;
      throw new AppError("invalid_request", `${name}: expected a file of at most ${maxBytes} bytes`);
    },
    readRoot(names, maxBytes) {
      const found = inFolder([], ({ path }) =>
        names.flatMap((name) => {
          const content = readFile(`${path}/${splitName(name).file}`, maxBytes);
          return content === null || content === "too large" ? [] : [{ name, bytes: content.bytes }];
        }),
      );
      return found ?? [];
    },
    stat(name) {
      const { folder, file } = splitName(name);
      return inFolder(folder, ({ path }) => statFile(`${path}/${file}`));
    },
    statAll: (parts, files) =>
      inFolder(parts, ({ path }) => files.map((file) => statFile(`${path}/${file}`))) ?? files.map(() => null),
    moveIn,
    remove(name) {
      const { folder, file } = splitName(name);
      const isRemoved = inFolder(folder, ({ fd, path }) => {
        if (statFile(`${path}/${file}`) === null) return false;
        fs.unlinkSync(`${path}/${file}`);
        fs.fsyncSync(fd);
        return true;
      });
      removeEmptyFolders(folder);
      return isRemoved === true;
    },
    inTheWay(name) {
      const { folder, file } = splitName(name);
      const parent = openFolder(root, folder);
      if (parent === "absent") return null;
      if (parent !== "blocked") {
        const isFolder = closing(parent, ({ path }) => isFolderAt(`${path}/${file}`));
        return isFolder ? { spelling: name, isFolder } : null;
      }
      const depth = folder.findIndex((_, at) => inFolder(folder.slice(0, at + 1), () => true) === null);
      return { spelling: folder.slice(0, depth + 1).join("/"), isFolder: false };
    },
    holdsOnly(folder, names) {
      const entries = inFolder(folder.split("/"), ({ path }) => readEntries(path)) ?? [];
      return (
        entries.length > 0 &&
        entries.every(({ part, kind }) => {
          const name = `${folder}/${part}`;
          return kind === "folder" ? this.holdsOnly(name, names) : names.has(name);
        })
      );
    },
    entries: (parts) => inFolder(parts, ({ path }) => readEntries(path)) ?? [],
    async entriesSoon(parts) {
      const folder = openFolder(root, parts);
      if (folder === "absent" || folder === "blocked") return [];
      try {
        return await readEntriesSoon(folder.path);
      } finally {
        fs.closeSync(folder.fd);
      }
    },
  };
}

/** Names come parsed; here is the last place that a bad one can be stopped. */
function splitName(name: string): { folder: string[]; file: string } {
  const folder = parseFileName(name).split("/");
  const file = folder.pop();
  if (file === undefined) throw new TypeError("a name has a part");
  return { folder, file };
}

function closing<T>(folder: Folder, use: (folder: Folder) => T): T {
  try {
    return use(folder);
  } finally {
    fs.closeSync(folder.fd);
  }
}

function makeFolder(parent: Folder, part: string): void {
  try {
    fs.mkdirSync(`${parent.path}/${part}`, { mode: 0o700 });
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  }
  fs.fsyncSync(parent.fd);
}

/** False where it is not empty, or no folder. */
function removeFolder(parent: Folder, part: string): boolean {
  try {
    fs.rmdirSync(`${parent.path}/${part}`);
  } catch (error) {
    if (hasCode(error, "ENOTEMPTY", "EEXIST", "ENOTDIR")) return false;
    if (!hasCode(error, "ENOENT")) throw error;
  }
  fs.fsyncSync(parent.fd);
  return true;
}

function rename(source: string, target: string, name: string): void {
  if (fs.lstatSync(source, { throwIfNoEntry: false }) === undefined) return;
  try {
    fs.renameSync(source, target);
  } catch (error) {
    if (!hasCode(error, "EISDIR", "ENOTEMPTY", "EEXIST")) throw error;
    throw new AppError("invalid_request", `name: expected "${name}" to be a file, it is a folder`, { cause: error });
  }
}

/** Writes a file that was not there (0600) and waits for the disk. */
export function writeNewFile(path: string, bytes: Uint8Array): void {
  const file = fs.openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    for (let at = 0; at < bytes.byteLength; ) at += fs.writeSync(file, bytes, at);
    fs.fsyncSync(file);
  } finally {
    fs.closeSync(file);
  }
}

const isFolderAt = (path: string): boolean => fs.lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

function statFile(path: string): FileStat | null {
  const stat = fs.lstatSync(path, { throwIfNoEntry: false });
  return stat?.isFile() ? { size: stat.size, mtimeMs: stat.mtimeMs } : null;
}

function readFile(path: string, maxBytes: number): FileContent | "too large" | null {
  const file = openPlain(path);
  if (file === null) return null;
  try {
    const stat = fs.fstatSync(file);
    if (!stat.isFile()) return null;
    if (stat.size > maxBytes) return "too large";
    const bytes = Buffer.allocUnsafe(stat.size);
    let length = 0;
    while (length < stat.size) {
      const count = fs.readSync(file, bytes, length, stat.size - length, null);
      if (count === 0) break;
      length += count;
    }
    return { bytes: bytes.subarray(0, length), mtimeMs: stat.mtimeMs };
  } finally {
    fs.closeSync(file);
  }
}

/** Never follows a link, never waits for a FIFO's other end. Null for what is not there or cannot be opened so. */
function openPlain(path: string): number | null {
  try {
    return fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    if (hasCode(error, "ENOENT", "ELOOP", "ENXIO", "ENODEV", "EACCES")) return null;
    throw error;
  }
}
