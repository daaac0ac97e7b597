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
  const file = fs.openSync(temporary, "w", 0o600);
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
