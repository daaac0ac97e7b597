import fs from "node:fs";
import { join } from "node:path";
import { hasCode } from "./jail-portable.ts";
import { STAGING, TRASH } from "./workspace.ts";

/** Files of one slice: they are unlinked beside the event loop. */
const AT_ONCE = 100;

/** Slices that remove a folder and all in it; links are removed, never followed. An absent one is no error. */
export async function* clearFolder(path: string): AsyncGenerator<void> {
  const entries = await entriesOf(path);
  const files = entries.filter((entry) => !entry.isDirectory());
  for (let at = 0; at < files.length; at += AT_ONCE) {
    await Promise.all(
      files.slice(at, at + AT_ONCE).map(({ name }) => fs.promises.rm(join(path, name), { force: true })),
    );
    yield;
  }
  for (const entry of entries) if (entry.isDirectory()) yield* clearFolder(join(path, entry.name));
  await fs.promises.rm(path, { recursive: true, force: true });
  yield;
}

/** Slices that remove the workspaces which were taken away in an instance, and wait in its staging folder. */
export async function* clearTrash(instanceFolder: string): AsyncGenerator<void> {
  const staging = join(instanceFolder, STAGING);
  for (const { name } of await entriesOf(staging)) {
    if (name.startsWith(TRASH)) yield* clearFolder(join(staging, name));
  }
}

/** The names in a folder, read beside the event loop. */
export const namesIn = async (path: string): Promise<string[]> => (await entriesOf(path)).map(({ name }) => name);

async function entriesOf(path: string): Promise<fs.Dirent[]> {
  try {
    return await fs.promises.readdir(path, { withFileTypes: true });
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}
