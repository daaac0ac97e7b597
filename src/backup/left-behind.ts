import { existsSync, renameSync } from "node:fs";
import { lstat, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { DAY_MS } from "../lib/calendar.ts";
import { hasCode } from "../lib/system-error.ts";
import { holdFile } from "../storage/lock.ts";

/**
 * Removes what processes that were killed have left in a folder: names of this form that have not changed for a day.
 * `made` is what was made there just now: it tells the disk's time, which may differ by more than that from this machine's.
 */
export async function removeLeftBehind(folder: string, form: RegExp, made: string): Promise<void> {
  const nowMs = (await stat(made)).mtimeMs;
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (!form.test(name) || path === made) continue;
    const found = await stat(path).catch(ifGone);
    if (found === null || nowMs - found.mtimeMs <= DAY_MS) continue;
    // What another user has left there is in nobody's way but that user's.
    await rm(path, { recursive: true, force: true }).catch(ifForbidden);
  }
}

const LOCK = "lock";

/** Marks a folder as worked in until `release`, or until this process dies. */
export function holdFolder(folder: string): { release(): void } {
  // Under its name, the lock has been held from the beginning.
  const made = join(folder, `${LOCK}.new`);
  const hold = holdFile(made);
  if (hold === null) throw new Error(`${folder} is in use by another process`);
  renameSync(made, join(folder, LOCK));
  return hold;
}

/** The same on a disk that may know no locks, such as a share: null there, and nobody removes the folder. */
export function holdIfPossible(folder: string): { release(): void } | null {
  try {
    return holdFolder(folder);
  } catch {
    return null;
  }
}

const CHECK = /^(\.|roost-)verify-/;

/** Removes from `folder` what checks have left there whose processes were killed: all of a host, decrypted. */
export const removeAbandonedChecks = (folder: string): Promise<void> => removeAbandoned(folder, CHECK);

/** Removes from `parent` the folders of this form and this user that processes have left which were killed. */
export async function removeAbandoned(parent: string, form: RegExp): Promise<void> {
  for (const name of (await readdir(parent).catch(ifGone)) ?? []) {
    const path = join(parent, name);
    // One without a lock is being made at this moment, or of an earlier build.
    if (!form.test(name) || !(await isOurFolder(path)) || !existsSync(join(path, LOCK))) continue;
    const hold = tryToHold(path);
    if (hold === null) continue;
    await rm(path, { recursive: true, force: true }).finally(hold.release);
  }
}

/** In a folder where everybody may put something, another user's lock could lead anywhere. */
async function isOurFolder(path: string): Promise<boolean> {
  const found = await lstat(path).catch(ifGone);
  return found?.isDirectory() === true && found.uid === process.geteuid?.();
}

/** Null if its process lives, or has removed it meanwhile. */
function tryToHold(folder: string): { release(): void } | null {
  try {
    return holdFile(join(folder, LOCK));
  } catch {
    return null;
  }
}

function ifForbidden(error: unknown): void {
  if (!hasCode(error, "EACCES", "EPERM")) throw error;
}

/** For a file that may be removed meanwhile. */
export function ifGone(error: unknown): null {
  if (hasCode(error, "ENOENT")) return null;
  throw error;
}
