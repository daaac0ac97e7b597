import { lstatSync, readlinkSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { hasCode } from "./system-error.ts";

/** Says which symbolic link on the way to a path has lost its target; null if none has. */
export function danglingLink(path: string): string | null {
  try {
    const entry = lstatSync(path, { throwIfNoEntry: false });
    if (entry === undefined) return dirname(path) === path ? null : danglingLink(dirname(path));
    if (!entry.isSymbolicLink() || statSync(path, { throwIfNoEntry: false })) return null;
    return `${path} is a symbolic link to ${readlinkSync(path)}, which does not exist`;
  } catch (error) {
    // What it is cannot be seen, or it leads back to itself.
    if (hasCode(error, "EACCES", "ENOTDIR", "ELOOP", "ENAMETOOLONG")) return null;
    throw error;
  }
}
