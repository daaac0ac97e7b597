import { AppError } from "../lib/app-error.ts";

/** Parent folders and the file itself. */
export const MAX_NAME_PARTS = 8;
const PART = /^(?!\.)[A-Za-z0-9._ -]{1,100}$/;

/** Whether this is a valid part of a file name (docs/contract/api.md, Agents); names that start with a dot are not. */
export const isFileNamePart = (text: string): boolean => PART.test(text);

/**
 * The name of a workspace file, relative and `/`-separated, as it was given (docs/contract/api.md, Files).
 * Throws `invalid_request` naming `field`.
 */
export function parseFileName(text: string, field = "name"): string {
  const parts = text.split("/", MAX_NAME_PARTS + 1);
  if (parts.length <= MAX_NAME_PARTS && parts.every(isFileNamePart)) return text;
  throw new AppError(
    "invalid_request",
    `${field}: expected a relative file name of 1 to ${MAX_NAME_PARTS} parts separated by "/", each 1 to 100 characters ` +
      'out of a–z, A–Z, 0–9, ".", "_", "-" and space, and none beginning with "."',
  );
}

/**
 * Names with the same folded form are the same file on a disk that ignores case and Unicode normalisation. For valid
 * names this equals SQLite's `lower`, by which the index is searched.
 */
export const foldName = (name: string): string => name.normalize("NFC").toLowerCase();

/** A file, or one of its parent folders. */
export interface PathEntry {
  spelling: string;
  isFolder: boolean;
}

/** A workspace's existing names, by look-up, so that a new name is not compared with 10,000 others. */
export interface StandingNames {
  /** Whether a file of exactly this name exists. */
  has(name: string): boolean;
  /** What exists under this name in any spelling; preferably with the same spelling. */
  at(step: PathEntry): PathEntry | undefined;
}

/** For a folder that does not exist yet. */
export const NO_NAMES: StandingNames = { has: () => false, at: () => undefined };

/**
 * Throws `invalid_request` if one of `added` clashes with an existing name or another added one: it would be both a
 * file and a folder, or differ from a name or parent folder only by case or Unicode normalisation
 * (docs/contract/api.md, Agents). An existing name may be added again; clashes among existing names are ignored.
 */
export function refuseClash(existing: StandingNames, added: Iterable<string>, field = "name"): void {
  const taken = new Map<string, PathEntry>();
  for (const name of added) {
    if (existing.has(name)) continue;
    for (const step of pathEntries(name)) {
      const folded = foldName(step.spelling);
      const other = taken.get(folded) ?? existing.at(step);
      if (other === undefined) taken.set(folded, step);
      else refuseDifferent(other, step, field);
    }
  }
}

/** A file's parent folders, then the file. A name that ends in `/` is an empty folder. */
export function* pathEntries(name: string): Generator<PathEntry> {
  for (let at = name.indexOf("/"); at !== -1; at = name.indexOf("/", at + 1)) {
    yield { spelling: name.slice(0, at), isFolder: true };
  }
  if (!name.endsWith("/")) yield { spelling: name, isFolder: false };
}

function refuseDifferent(other: PathEntry, step: PathEntry, field: string): void {
  if (other.isFolder !== step.isFolder) {
    throw new AppError(
      "invalid_request",
      `${field}: expected "${other.spelling}" to be either a file or a folder, not both`,
    );
  }
  if (other.spelling !== step.spelling) {
    throw new AppError(
      "invalid_request",
      `${field}: expected a name that differs from "${other.spelling}" in more than case; got "${step.spelling}"`,
    );
  }
}
