import type { Dirent } from "node:fs";
import { type FileHandle, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { ArchivedFile } from "./archive.ts";
import { ifGone } from "./left-behind.ts";

/** A folder whose files are saved; the paths are relative to it. */
export interface SourceFolder {
  /** `[]` if there is no such folder. */
  entries(path: string): Promise<Dirent[]>;
  /** Null if there is no such file. */
  open(path: string): Promise<FileHandle | null>;
}

export const folderAt = (root: string): SourceFolder => ({
  entries: async (path) => (await readdir(join(root, path), { withFileTypes: true }).catch(ifGone)) ?? [],
  open: (path) => open(join(root, path), "r").catch(ifGone),
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
        const { bytesRead } = await (file as NonNullable<typeof file>).read(chunk, 0, chunk.length, at);
        if (bytesRead === 0) throw new Error(`${name} became shorter while it was read; try again`);
        at += bytesRead;
        yield chunk.subarray(0, bytesRead);
      }
    }
    yield { name, size, modifiedAtMs: Math.floor(mtimeMs), content: content() };
  } finally {
    await file.close();
  }
}
