import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { isOutOfFiles } from "./system-error.ts";

/** More than a thread opens as it starts, since connections may come in at the same moment. */
const FILES_OF_THREAD = 32;

/**
 * Starts a thread with an empty environment. Throws EMFILE if few files can be opened: one that lacks a file as it starts
 * makes Bun end the whole process.
 */
export function startThread(address: string): Worker {
  requireFiles(FILES_OF_THREAD);
  return new Worker(address, { env: {}, smol: true, ref: false });
}

function requireFiles(count: number): void {
  const opened: number[] = [];
  try {
    while (opened.length < count) opened.push(openSync(devNull, "r"));
  } finally {
    for (const file of opened) closeSync(file);
  }
}

/** The number that the next file gets: all lower ones are in use. Null if no file can be opened. */
export function nextFile(): number | null {
  try {
    const file = openSync(devNull, "r");
    closeSync(file);
    return file;
  } catch (error) {
    if (isOutOfFiles(error)) return null;
    throw error;
  }
}
