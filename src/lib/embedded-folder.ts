import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** The repository's data folders that the build embeds in the binary. */
export type EmbeddedFolder = "workspaces" | "skills";

/**
 * The folder's path: in the checkout, or inside the binary. `readdir`, `readFile`, `stat`, `Glob` and `Bun.file` work
 * on both; `cpSync` and watching fail on the embedded one.
 */
export const embeddedFolder = (name: EmbeddedFolder): string =>
  Bun.isStandaloneExecutable ? `/$bunfs/root/${name}` : resolve(import.meta.dir, "../..", name);

/** The text of every file in the folder, by its relative path (with `/`), sorted by path. */
export function readEmbeddedFolder(name: EmbeddedFolder): Map<string, string> {
  const folder = embeddedFolder(name);
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
  return new Map(files.map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}
