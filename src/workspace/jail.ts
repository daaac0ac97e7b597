/**
 * Files beneath a root that no name can leave: not by `..`, an absolute name, a link anywhere on the way, or a folder
 * swapped for a link meanwhile. Names are looked up and changed synchronously, which is cheap and never half visible;
 * waiting for the disk happens off the event loop. Only plain files exist here: links, FIFOs and devices read as
 * absent.
 */
// The default import, so that tests can fail any system call.
import fs from "node:fs";
import { AppError } from "../lib/app-error.ts";
import { forEachLimited } from "../lib/concurrency.ts";
import { hasCode } from "../lib/system-error.ts";
import { syncFolderSoon } from "./disk.ts";
import { type PathEntry, parseFileName } from "./file-name.ts";
import { type FolderEntry, readEntries, readEntriesSoon } from "./jail-entries.ts";
import { probeLinux } from "./jail-linux.ts";
import { makeFolder, put, removeFolder } from "./jail-moves.ts";
import { type FileVersion, type Folder, type OpenFolder, openFolderByParts } from "./jail-portable.ts";

export interface FileStat {
  size: number;
  mtimeMs: number;
}

export interface FileContent {
  bytes: Buffer;
  mtimeMs: number;
}

type UseFiles<T> = (read: (file: string) => Buffer | null, stat: (file: string) => FileVersion | null) => T;

export interface Jail {
  /**
   * Null if there is no such plain file that this process may read. Throws `invalid_request` if it exceeds `maxBytes`.
   */
  read(name: string, maxBytes: number): FileContent | null;
  /**
   * Runs `use` on files of one folder, which is opened once. Each file is read, or only looked at, on demand: null if
   * there is no such plain file, or if it exceeds `maxBytes`.
   */
  readIn<T>(folder: readonly string[], maxBytes: number, use: UseFiles<T>): T;
  stat(name: string): FileStat | null;
  /** The same for many files of one folder, which is opened once. */
  statAll(folder: readonly string[], files: readonly string[]): (FileStat | null)[];
  /**
   * Puts files of the same disk into the jail, replacing existing files and creating parent folders. If the file system
   * supports links, each `source` stays, so that this can be repeated; a missing one is already in place. Throws
   * `invalid_request` if a folder is where a file should be, or the reverse.
   */
  putIn(files: readonly { source: string; name: string }[]): void;
  /** False if there was no such plain file. Removes parent folders that become empty, up to the root. */
  remove(name: string): boolean;
  /** Waits until all changes made through this jail are on disk. */
  sync(): void;
  /** The same, off the event loop. */
  syncSoon(): Promise<void>;
  /** What prevents this file from being written: a folder of its name, or a parent that is not a folder. */
  inTheWay(name: string): PathEntry | null;
  /** Whether the folder holds exactly these files and is not empty, so that removing them removes it. */
  holdsOnly(folder: string, names: ReadonlySet<string>): boolean;
  /** The entries of the folder at these parts; `[]` if it does not exist. */
  entries(parts: readonly string[]): FolderEntry[];
  /** The same for a folder that may be very large, read off the event loop. */
  entriesSoon(parts: readonly string[]): Promise<FolderEntry[]>;
}

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
/** A change may touch hundreds of folders, and the few threads that wait for the disk are shared by everybody. */
const SYNC_CONCURRENCY = 2;

let probed: OpenFolder | undefined;
const systemOpenFolder = (): OpenFolder => {
  probed ??= probeLinux() ?? openFolderByParts;
  return probed;
};

/** How the jail is enforced on this machine, for `roost doctor`: by the kernel, or by checking each part. */
export const jailLevel = (): "openat2" | "portable" =>
  systemOpenFolder() === openFolderByParts ? "portable" : "openat2";

/** A jail on the folder at `root`. If it does not exist, the jail is empty and writing throws. */
export function openJail(root: string, openFolder: OpenFolder = systemOpenFolder()): Jail {
  /** The folders with changed entries, by path. */
  const touched = new Map<string, readonly string[]>();
  const touch = (parts: readonly string[]) => void touched.set(parts.join("/"), parts);

  /** Runs `use` on the open folder at `parts`; null if it cannot be opened. */
  function inFolder<T>(parts: readonly string[], use: (folder: Folder) => T): T | null {
    const folder = openFolder(root, parts);
    return folder === "absent" || folder === "blocked" ? null : closing(folder, use);
  }

  /** Like `inFolder`, but creates missing folders. */
  function inMadeFolder(parts: readonly string[], use: (folder: Folder) => void): void {
    let folder = openFolder(root, parts);
    const last = parts.at(-1);
    if (folder === "absent" && last !== undefined) {
      const above = parts.slice(0, -1);
      inMadeFolder(above, (parent) => makeFolder(parent, last));
      touch(above);
      folder = openFolder(root, parts);
    }
    if (folder === "absent") throw new Error(`the folder ${root} is missing`);
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
      const none = () => null;
      if (folder === "absent" || folder === "blocked") return use(none, none);
      return closing(folder, ({ path, stat }) =>
        use(
          (file) => {
            const content = readFile(`${path}/${file}`, maxBytes);
            return content === null || content === "too large" ? null : content.bytes;
          },
          (file) => {
            const version = stat(file);
            return version !== null && version.size <= maxBytes ? version : null;
          },
        ),
      );
    },
    stat(name) {
      const { folder, file } = splitName(name);
      return inFolder(folder, ({ stat }) => stat(file));
    },
    statAll: (parts, files) => inFolder(parts, ({ stat }) => files.map((file) => stat(file))) ?? files.map(() => null),
    putIn,
    remove(name) {
      const { folder, file } = splitName(name);
      const isRemoved = inFolder(folder, ({ path, stat }) => {
        if (stat(file) === null) return false;
        fs.unlinkSync(`${path}/${file}`);
        return true;
      });
      touch(folder);
      removeEmptyFolders(folder);
      return isRemoved === true;
    },
    sync() {
      for (const parts of touched.values()) {
        // Parent folders too: an earlier process may have created them and died before this.
        for (let depth = parts.length; depth >= 0; depth--) {
          inFolder(parts.slice(0, depth), ({ fd }) => fs.fsyncSync(fd));
        }
      }
      touched.clear();
    },
    async syncSoon() {
      await forEachLimited(SYNC_CONCURRENCY, [...touched.values()], async (parts) => {
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

/** Names are parsed before; this is the last place to stop a bad one. */
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

/**
 * Never follows a link, never waits for a FIFO's other end. Null if the file does not exist or cannot be opened like
 * this.
 */
function openPlain(path: string): number | null {
  try {
    return fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    if (hasCode(error, "ENOENT", "ELOOP", "ENXIO", "ENODEV", "EACCES")) return null;
    throw error;
  }
}
