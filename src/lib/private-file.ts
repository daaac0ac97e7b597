import fs from "node:fs";
import { dirname } from "node:path";
import { describeSystemError } from "./system-error.ts";

/** Writes a file that only its owner can read (0600), atomically; it is on disk when this returns. */
export function writePrivateFile(path: string, content: string | Uint8Array): void {
  try {
    write(path, content);
  } catch (error) {
    throw describeSystemError(`${path} cannot be written`, error);
  }
}

/** Reads a file that must exist. Throws an error that names it when it cannot be read. */
export function readPrivateFile(path: string): Buffer {
  try {
    return fs.readFileSync(path);
  } catch (error) {
    throw describeSystemError(`${path} cannot be read`, error);
  }
}

/** Reads a JSON file. Throws an error that names the file but quotes nothing from it. */
export function readPrivateJson(path: string): unknown {
  const content = readPrivateFile(path).toString();
  try {
    return JSON.parse(content);
  } catch {
    throw new Error(
      `${path} is damaged: it is not valid JSON; restore it from a copy of the data folder that includes the keys`,
    );
  }
}

function write(path: string, content: string | Uint8Array): void {
  const temporary = `${path}.${process.pid}.tmp`;
  // A new file: nothing is written through a link that somebody may have put there.
  fs.rmSync(temporary, { force: true });
  const file = openNew(temporary);
  try {
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    for (let at = 0; at < bytes.byteLength; ) at += fs.writeSync(file, bytes, at);
    fs.fsyncSync(file);
  } finally {
    fs.closeSync(file);
  }
  fs.renameSync(temporary, path);
  syncFolder(dirname(path));
}

/**
 * Creates an empty file that only its owner can read (0600), if it is missing. An existing one is not opened: closing it
 * again would drop the locks that another connection of this process holds on it.
 */
export function createPrivateFile(path: string): void {
  try {
    fs.closeSync(openNew(path));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}

function openNew(path: string): number {
  const file = fs.openSync(path, "wx", 0o600);
  giveToOwnerOf(dirname(path), file);
  return file;
}

const COPIED_AT_ONCE = 1024 * 1024;

/**
 * Copies a file to one that only its owner can read (0600), in place of what is there; it is on disk when this returns.
 * Follows no link: root may run it in a folder where another user can put one.
 */
export function copyPrivateFile(from: string, to: string): void {
  const source = fs.openSync(from, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW);
  try {
    fs.rmSync(to, { force: true });
    const target = openNew(to);
    try {
      const buffer = Buffer.allocUnsafe(COPIED_AT_ONCE);
      for (let read = -1; read !== 0; ) {
        read = fs.readSync(source, buffer);
        for (let at = 0; at < read; ) at += fs.writeSync(target, buffer, at, read - at);
      }
      fs.fsyncSync(target);
    } finally {
      fs.closeSync(target);
    }
  } finally {
    fs.closeSync(source);
  }
}

/** Whether two files have the same bytes. */
export function hasSameContent(one: string, other: string): boolean {
  if (fs.statSync(one).size !== fs.statSync(other).size) return false;
  const files = [fs.openSync(one, "r")];
  try {
    files.push(fs.openSync(other, "r"));
    for (;;) {
      const [first, second] = files.map((file) => {
        const buffer = Buffer.allocUnsafe(COPIED_AT_ONCE);
        return buffer.subarray(0, fs.readSync(file, buffer));
      });
      if (first === undefined || second === undefined || !first.equals(second)) return false;
      if (first.length === 0) return true;
    }
  } finally {
    for (const file of files) fs.closeSync(file);
  }
}

/** Creates a folder that only its owner can enter (0700), and those that it is in, if they are missing. */
export function makePrivateFolder(path: string): void {
  const parent = dirname(path);
  if (!fs.existsSync(parent)) makePrivateFolder(parent);
  if (fs.mkdirSync(path, { recursive: true, mode: 0o700 }) !== undefined) keepOwner(parent, path);
}

/**
 * Root may work in the folder of the user that the server runs as: what it makes there belongs to that user, who could
 * not use it otherwise.
 */
export function keepOwner(folder: string, path: string): void {
  const file = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW);
  try {
    giveToOwnerOf(folder, file);
  } finally {
    fs.closeSync(file);
  }
}

/** By its descriptor: a path may lead elsewhere by now. */
function giveToOwnerOf(folder: string, file: number): void {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = fs.statSync(folder);
  if (uid !== 0) fs.fchownSync(file, uid, gid);
}

/** Puts a file's content on disk. */
export function syncFile(path: string): void {
  const file = fs.openSync(path, "r");
  try {
    fs.fsyncSync(file);
  } finally {
    fs.closeSync(file);
  }
}

/** Puts the names in a folder on disk. */
export const syncFolder = syncFile;
