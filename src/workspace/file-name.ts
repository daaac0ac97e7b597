import { AppError } from "../lib/app-error.ts";

/** Folders on the way and the file itself. */
export const MAX_NAME_PARTS = 8;
const PART = /^(?!\.)[A-Za-z0-9._ -]{1,100}$/;

/** True for one part of a file name that the contract allows (api.md section 4). `.` and `..` begin with a dot. */
export const isFileNamePart = (text: string): boolean => PART.test(text);

/**
 * The name of a workspace file, relative and `/`-separated, as it was given (api.md section 4).
 * Throws `invalid_request` naming `field`.
 */
export function parseFileName(text: string, field = "name"): string {
  const parts = text.split("/", MAX_NAME_PARTS + 1);
  if (parts.length <= MAX_NAME_PARTS && parts.every(isFileNamePart)) return text;
  throw new AppError(
    "invalid_request",
    `${field}: expected a relative file name of 1 to ${MAX_NAME_PARTS} parts separated by "/", each 1 to 100 characters ` +
      'out of letters, digits, ".", "_", "-" and space, and none beginning with "."',
  );
}

/**
 * Names with the same form are one name to a disk that ignores case and Unicode form. For the names that the contract
 * allows it is SQLite's `lower`, by which the index is searched.
 */
export const foldName = (name: string): string => name.normalize("NFC").toLowerCase();

/** A file, or a folder on the way to one. */
export interface Step {
  spelling: string;
  isFolder: boolean;
}

/** What stands in a workspace, to be looked up: a new name is not compared with 10,000 others. */
export interface StandingNames {
  /** True for a file of exactly this name. */
  has(name: string): boolean;
  /** What stands in the step's place under whatever spelling; the same as the step, where that stands there too. */
  at(step: Step): Step | undefined;
}

/** Of a folder that is yet to be made. */
export const NO_NAMES: StandingNames = { has: () => false, at: () => undefined };

/**
 * Throws `invalid_request` where one of `added` cannot stand beside the `existing` names or the other added ones: it
 * would be both file and folder, or it differs from another name, or from a folder on its way, only by case or Unicode
 * form (api.md section 4). An existing name may be added again; clashes among existing ones are not judged.
 */
export function refuseClash(existing: StandingNames, added: Iterable<string>, field = "name"): void {
  const taken = new Map<string, Step>();
  for (const name of added) {
    if (existing.has(name)) continue;
    for (const step of stepsOf(name)) {
      const folded = foldName(step.spelling);
      const other = taken.get(folded) ?? existing.at(step);
      if (other === undefined) taken.set(folded, step);
      else refuseDifferent(other, step, field);
    }
  }
}

/** The folders on the way to a file, then the file. A name that ends in `/` is an empty folder's. */
export function* stepsOf(name: string): Generator<Step> {
  for (let at = name.indexOf("/"); at !== -1; at = name.indexOf("/", at + 1)) {
    yield { spelling: name.slice(0, at), isFolder: true };
  }
  if (!name.endsWith("/")) yield { spelling: name, isFolder: false };
}

function refuseDifferent(other: Step, step: Step, field: string): void {
  if (other.isFolder !== step.isFolder) {
    throw new AppError(
      "invalid_request",
      `${field}: expected "${other.spelling}" to be either a file or a folder, not both`,
    );
  }
  if (other.spelling !== step.spelling) {
    throw new AppError(
      "invalid_request",
      `${field}: expected a name that differs from "${other.spelling}" by more than case; got "${step.spelling}"`,
    );
  }
}
