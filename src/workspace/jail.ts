/**
 * Files beneath a root that nobody leaves: not by `..`, by an absolute name, by a link anywhere on the way, nor by
 * swapping a folder for a link meanwhile. Names are looked up and changed synchronously: that is cheap, and nobody sees
 * half of it. What waits for the disk is done apart, beside the event loop. Only plain files exist here. A link, a FIFO or a device is never read, and reads as absent.
 */
// The default import, so that a test can stop it at any call to the system.
import fs from "node:fs";
import { AppError } from "../lib/app-error.ts";
import { forEachLimited } from "../lib/concurrency.ts";
import { syncFolderSoon } from "./disk.ts";
import { parseFileName, type Step } from "./file-name.ts";
import { type FolderEntry, readEntries, readEntriesSoon } from "./jail-entries.ts";
import { probeLinux } from "./jail-linux.ts";
import { makeFolder, put, removeFolder } from "./jail-moves.ts";
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
  /**
   * What `use` makes of files of one folder, opened in one go. Each is read when it is asked for: null where there is no
   * such plain file, or one of more than `maxBytes`.
   */
  readIn<T>(folder: readonly string[], maxBytes: number, use: (read: (file: string) => Buffer | null) => T): T;
  stat(name: string): FileStat | null;
  /** The same of many files of one folder, opened in one go. */
  statAll(folder: readonly string[], files: readonly string[]): (FileStat | null)[];
  /**
   * Puts files of the same disk into the jail, replacing what is there and making the folders on the way. The `source`
   * stays, so that it can be done again, as long as the disk knows links; one that is gone was put there before. Throws
   * `invalid_request` where a folder stands in a file's place or the other way round.
   */
  putIn(files: readonly { source: string; name: string }[]): void;
  /** False where there was no such plain file. Folders left empty go with it, up to the root. */
  remove(name: string): boolean;
  /** Waits until all that this jail has put in or removed is on disk. */
  sync(): void;
  /** The same, beside the event loop. */
  syncSoon(): Promise<void>;
  /** The first thing on the way to this file that keeps it from being written: a folder of its name, or no folder before it. */
  inTheWay(name: string): Step | null;
  /** True where the folder holds these files and nothing else, and is not empty: removing them removes it. */
  holdsOnly(folder: string, names: ReadonlySet<string>): boolean;
  /** What the folder at these parts holds; `[]` where there is none. */
  entries(parts: readonly string[]): FolderEntry[];
  /** The same of a folder that may hold very much: the disk is read beside everything else. */
  entriesSoon(parts: readonly string[]): Promise<FolderEntry[]>;
}

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
/** A change may touch hundreds of folders; the threads that wait for the disk are few, and everybody's. */
const SYNCS_AT_ONCE = 2;

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
  /** The folders whose entries were changed, by path. */
  const touched = new Map<string, readonly string[]>();
  const touch = (parts: readonly string[]) => void touched.set(parts.join("/"), parts);

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
      const above = parts.slice(0, -1);
      inMadeFolder(above, (parent) => makeFolder(parent, last));
      touch(above);
      folder = openFolder(root, parts);
    }
    if (folder === "absent") throw new Error(`the folder ${root} is gone`);
    if (folder === "blocked") {
      throw new AppError("invalid_request", `name: expected "${parts.join("/")}" to be a folder`);
    }
    closing(folder, use);
  }

  function putIn(files: readonly { source: string; name: string }[]): void {
    const byFolder = Map.groupBy(files, ({ name }) => name.slice(0, Math.max(0, name.lastIndexOf("/"))));
    for (const group of byFolder.values()) {
      const [first] = group;
      if (first === undefined) continue;
      const parts = splitName(first.name).folder;
      inMadeFolder(parts, (folder) => {
        for (const { source, name } of group) put(source, `${folder.path}/${splitName(name).file}`, name);
      });
      touch(parts);
    }
  }

  function removeEmptyFolders(parts: readonly string[]): void {
    const last = parts.at(-1);
    if (last === undefined) return;
    const above = parts.slice(0, -1);
    const isRemoved = inFolder(above, (parent) => removeFolder(parent, last));
    if (isRemoved === false) return;
    touch(above);
    removeEmptyFolders(above);
  }

  return {
    read(name, maxBytes) {
      const { folder, file } = splitName(name);
      const content = inFolder(folder, ({ path }) => readFile(`${path}/${file}`, maxBytes));
      if (content !== "too large") return content;
      throw new AppError("invalid_request", `${name}: expected a file of at most ${maxBytes} bytes`);
    },
    readIn(parts, maxBytes, use) {
      const folder = openFolder(root, parts);
      if (folder === "absent" || folder === "blocked") return use(() => null);
      return closing(folder, ({ path }) =>
        use((file) => {
          const content = readFile(`${path}/${file}`, maxBytes);
          return content === null || content === "too large" ? null : content.bytes;
        }),
      );
    },
    stat(name) {
      const { folder, file } = splitName(name);
      return inFolder(folder, ({ path }) => statFile(`${path}/${file}`));
    },
    statAll: (parts, files) =>
      inFolder(parts, ({ path }) => files.map((file) => statFile(`${path}/${file}`))) ?? files.map(() => null),
    putIn,
    remove(name) {
      const { folder, file } = splitName(name);
      const isRemoved = inFolder(folder, ({ path }) => {
        if (statFile(`${path}/${file}`) === null) return false;
        fs.unlinkSync(`${path}/${file}`);
        return true;
      });
      touch(folder);
      removeEmptyFolders(folder);
      return isRemoved === true;
    },
    sync() {
      for (const parts of touched.values()) {
        // Folders on the way, too: an earlier process may have made them, and not have come to this.
        for (let depth = parts.length; depth >= 0; depth--) {
          inFolder(parts.slice(0, depth), ({ fd }) => fs.fsyncSync(fd));
        }
      }
      touched.clear();
    },
    async syncSoon() {
      await forEachLimited(SYNCS_AT_ONCE, [...touched.values()], async (parts) => {
        const folder = openFolder(root, parts);
        if (folder === "absent" || folder === "blocked") return;
        try {
          await syncFolderSoon(folder.path);
        } finally {
          fs.closeSync(folder.fd);
        }
      });
      touched.clear();
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
