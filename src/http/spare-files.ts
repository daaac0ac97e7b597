import { nextFile } from "../lib/open-files.ts";

export interface SpareFilesOptions {
  /** How many files and connections the host may have open; null if unknown. */
  openFiles: number | null;
  /** Closes the connections that wait for their next request. */
  closeIdle(): void;
  next?: () => number | null;
}

/** Files that are spared for what the host itself opens, of a larger limit. */
const SPARE = 256;
/** Each look takes some microseconds. */
const REQUESTS_BETWEEN_LOOKS = 8;

/**
 * To be called at each request: clients that keep connections for later must not use up the files that the host may open.
 * They connect again with their next request.
 */
export function spareFiles({ openFiles, closeIdle, next = nextFile }: SpareFilesOptions): () => void {
  if (openFiles === null) return () => undefined;
  const most = openFiles - Math.min(SPARE, Math.floor(openFiles / 4));
  let requests = 0;
  return () => {
    if (requests++ % REQUESTS_BETWEEN_LOOKS > 0) return;
    const file = next();
    // Once all are in use, connections that have sent nothing have them: who loses one now would not get another.
    if (file !== null && file >= most) closeIdle();
  };
}
