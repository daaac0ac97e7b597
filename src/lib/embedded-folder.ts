import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** The data folders at the top of the repository that the build puts into the binary. */
export type EmbeddedFolder = "workspaces" | "skills";

/**
 * The folder's path: in the checkout, or inside the binary. `readdir`, `readFile`, `stat`, `Glob` and `Bun.file` work on
 * both; `cpSync` and watching fail on the embedded one.
 */
export const embeddedFolder = (name: EmbeddedFolder): string =>
  Bun.isStandaloneExecutable ? `/$bunfs/root/${name}` : resolve(import.meta.dir, "../..", name);

/** Every file below the folder as text, by its path relative to the folder with `/` between the parts, sorted by path. */
export function readEmbeddedFolder(name: EmbeddedFolder): Map<string, string> {
  const folder = embeddedFolder(name);
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
  return new Map(files.map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}
