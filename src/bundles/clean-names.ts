import { foldName, isFileNamePart, MAX_NAME_PARTS, type PathEntry, pathEntries } from "../workspace/file-name.ts";
import type { Redaction } from "./redaction.ts";

/**
 * The names of a workspace's files, by what they are now, without the values of secrets: `secret NAME` takes their place,
 * since a file's name has no brackets. Null for one that is no longer a name of a file, or would be that of another.
 */
export async function cleanNames(
  names: readonly string[],
  redaction: Pick<Redaction, "text">,
): Promise<ReadonlyMap<string, string | null>> {
  const taken = new Map<string, PathEntry>();
  const take = (name: string) => {
    for (const step of pathEntries(name)) taken.set(foldName(step.spelling), step);
  };
  const isFree = (name: string): boolean =>
    [...pathEntries(name)].every((step) => {
      const other = taken.get(foldName(step.spelling));
      return other === undefined || (other.isFolder && step.isFolder && other.spelling === step.spelling);
    });
  const clean = new Map<string, string | null>();
  for (const name of names) clean.set(name, await redaction.text(name));
  // Those that stay as they are come first: no other may take their places.
  for (const [name, said] of clean) if (said === name) take(name);
  for (const [name, said] of clean) {
    if (said === null || said === name) continue;
    const plain = said.replaceAll(/[[\]]/g, "");
    const isUsable = isFileName(plain) && isFree(plain);
    clean.set(name, isUsable ? plain : null);
    if (isUsable) take(plain);
  }
  return clean;
}

function isFileName(name: string): boolean {
  const parts = name.split("/");
  return parts.length <= MAX_NAME_PARTS && parts.every(isFileNamePart);
}
