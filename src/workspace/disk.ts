/** Writing to disk durably. Functions named `…Soon` wait off the event loop, without blocking it. */
import fs from "node:fs";

const { O_RDONLY, O_DIRECTORY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants;

/** Resolves when the folder's entries are on disk. */
export async function syncFolderSoon(folder: string): Promise<void> {
  const file = await fs.promises.open(folder, O_RDONLY | O_DIRECTORY);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Writes a new file (0600), on disk when this resolves. Returns its modification time, in milliseconds since 1970. */
export async function writeNewFileSoon(path: string, bytes: Uint8Array): Promise<number> {
  const file = await fs.promises.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    for (let at = 0; at < bytes.byteLength; ) at += (await file.write(bytes, at, bytes.byteLength - at)).bytesWritten;
    await file.sync();
    return (await file.stat()).mtimeMs;
  } finally {
    await file.close();
  }
}
