import type { Dirent } from "node:fs";
import { type FileHandle, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { describeSystemError, hasCode } from "../lib/system-error.ts";
import type { ArchivedFile } from "./archive.ts";
import { ifGone } from "./left-behind.ts";

/** A folder whose files are saved; the paths are relative to it. */
export interface SourceFolder {
  /** `[]` if there is no such folder. */
  entries(path: string): Promise<Dirent[]>;
  /** Null if there is no such file. */
  open(path: string): Promise<FileHandle | null>;
}

/** What is to be saved cannot be read, which says nothing of the place where it would be saved. */
export class UnreadableError extends Error {}

const OPEN_IT = "let the data folder's owner read it";

/** For the `catch` of whoever reads this path. */
export const unreadable =
  (path: string) =>
  (error: unknown): never => {
    const alternative = hasCode(error, "EACCES", "EPERM") ? OPEN_IT : undefined;
    const { message } = describeSystemError(`${path} cannot be read`, error, alternative) as Error;
    throw new UnreadableError(message, { cause: error });
  };

export const folderAt = (root: string): SourceFolder => ({
  async entries(path) {
    const folder = join(root, path);
    return (await readdir(folder, { withFileTypes: true }).catch(ifGone).catch(unreadable(folder))) ?? [];
  },
  open(path) {
    const file = join(root, path);
    return open(file, "r").catch(ifGone).catch(unreadable(file));
  },
});

/** The files below a path in the folder, named by their path after `prefix`. */
export async function* filesBelow(
  folder: SourceFolder,
  prefix: string,
  isWanted: (path: string) => boolean = () => true,
  path = "",
): AsyncGenerator<ArchivedFile> {
  for (const entry of await folder.entries(path)) {
    const below = join(path, entry.name);
    if (!isWanted(below)) continue;
    if (entry.isDirectory()) yield* filesBelow(folder, prefix, isWanted, below);
    else if (entry.isFile()) yield* fileOf(folder, below, `${prefix}/${below}`);
  }
}

const CHUNK_BYTES = 1024 * 1024;

/** A file if it is still there, with the size that it has when it is opened. */
export async function* fileOf(folder: SourceFolder, path: string, name: string): AsyncGenerator<ArchivedFile> {
  const file = await folder.open(path);
  if (file === null) return;
  try {
    const { size, mtimeMs } = await file.stat();
    async function* content(): AsyncGenerator<Uint8Array> {
      for (let at = 0; at < size; ) {
        const chunk = new Uint8Array(Math.min(CHUNK_BYTES, size - at));
        const reading = (file as NonNullable<typeof file>).read(chunk, 0, chunk.length, at);
        const { bytesRead } = await reading.catch(unreadable(name));
        if (bytesRead === 0) throw new UnreadableError(`${name} became shorter while it was read; try again`);
        at += bytesRead;
        yield chunk.subarray(0, bytesRead);
      }
    }
    yield { name, size, modifiedAtMs: Math.floor(mtimeMs), content: content() };
  } finally {
    await file.close();
  }
}
