import fs from "node:fs";
import { join } from "node:path";
import { hasCode } from "../lib/system-error.ts";
import { STAGING, TRASH } from "./workspace.ts";

/** Files in one slice; they are unlinked off the event loop. */
const BATCH = 100;

/** Removes a folder and its contents in slices. Links are removed, never followed. A missing folder is not an error. */
export async function* clearFolder(path: string): AsyncGenerator<void> {
  // An operator may have put a link in the folder's place.
  if (await isFolder(path)) yield* clearContents(path);
  await fs.promises.rm(path, { recursive: true, force: true });
  yield;
}

async function* clearContents(path: string): AsyncGenerator<void> {
  const entries = await entriesOf(path);
  const files = entries.filter((entry) => !entry.isDirectory());
  for (let at = 0; at < files.length; at += BATCH) {
    await Promise.all(files.slice(at, at + BATCH).map(({ name }) => fs.promises.rm(join(path, name), { force: true })));
    yield;
  }
  for (const entry of entries) if (entry.isDirectory()) yield* clearFolder(join(path, entry.name));
}

const isFolder = (path: string): Promise<boolean> =>
  fs.promises.lstat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

/** Removes, in slices, deleted workspaces that were moved into the instance's staging folder. */
export async function* clearTrash(instanceFolder: string): AsyncGenerator<void> {
  const staging = join(instanceFolder, STAGING);
  for (const { name } of await entriesOf(staging)) {
    if (name.startsWith(TRASH)) yield* clearFolder(join(staging, name));
  }
}

/** The names in a folder, read off the event loop. */
export const namesIn = async (path: string): Promise<string[]> => (await entriesOf(path)).map(({ name }) => name);

async function entriesOf(path: string): Promise<fs.Dirent[]> {
  try {
    return await fs.promises.readdir(path, { withFileTypes: true });
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}
