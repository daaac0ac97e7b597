import { closeSync, openSync, statfsSync, truncateSync, writeSync } from "node:fs";

const GIB = 2 ** 30;

/** Twice the bytes that the disk of a folder has: other programs may free some meanwhile. */
export function tooMuch(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return 2 * Math.ceil((bavail * bsize) / GIB) * GIB;
}

/** Makes a closed database one that says that it has this size; most of it takes no space. */
export function enlarge(path: string, bytes: number): void {
  truncateSync(path, bytes);
  const pages = Buffer.alloc(4);
  pages.writeUInt32BE(bytes / 4096);
  const file = openSync(path, "r+");
  writeSync(file, pages, 0, 4, 28);
  closeSync(file);
}
