import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { inWords } from "./system-error.ts";

/** Writes a file that only its owner reads (0600): whole or not at all, and on disk when it returns. Throws in words. */
export function writePrivateFile(path: string, content: string | Uint8Array): void {
  try {
    write(path, content);
  } catch (error) {
    throw inWords(`${path} cannot be written`, error);
  }
}

/** The bytes of a file that must be there. Throws, in words that name it, when it cannot be read. */
export function readPrivateFile(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw inWords(`${path} cannot be read`, error);
  }
}

/** What a file of JSON holds. Throws, in words that name it and nothing of what is in it, when it holds anything else. */
export function readPrivateJson(path: string): unknown {
  const content = readPrivateFile(path).toString();
  try {
    return JSON.parse(content);
  } catch {
    throw new Error(
      `${path} is damaged: it holds no JSON; put it back from a copy of the data folder that has the keys`,
    );
  }
}

function write(path: string, content: string | Uint8Array): void {
  const temporary = `${path}.${process.pid}.tmp`;
  const file = openSync(temporary, "w", 0o600);
  try {
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    for (let at = 0; at < bytes.byteLength; ) at += writeSync(file, bytes, at);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
