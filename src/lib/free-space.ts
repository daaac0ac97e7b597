import { statfsSync } from "node:fs";
import { statfs } from "node:fs/promises";

/** What a running host needs to go on: its database, its log, its workspaces. */
const RESERVED_BYTES = 256 * 1024 * 1024;

/**
 * Null if the disk of a folder has room for so many bytes more; otherwise what is missing, and what to do, to follow the
 * name of what needs them.
 */
export const shortageOf = async (folder: string, bytes: number): Promise<string | null> =>
  shortage(folder, bytes, await statfs(folder));

/** The same at once, for a start that serves nobody yet. */
export const shortageNow = (folder: string, bytes: number): string | null =>
  shortage(folder, bytes, statfsSync(folder));

function shortage(folder: string, bytes: number, { bavail, bsize }: { bavail: number; bsize: number }): string | null {
  const free = bavail * bsize;
  if (free >= bytes + RESERVED_BYTES) return null;
  return (
    `needs ${megabytes(bytes)} MB, and ${megabytes(RESERVED_BYTES)} MB must stay free, but the disk of ${folder} has ` +
    `${megabytes(free)} MB; free some space there`
  );
}

const megabytes = (bytes: number): number => Math.ceil(bytes / 1e6);
