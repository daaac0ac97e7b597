import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { DAY_MS } from "../lib/calendar.ts";
import { hasCode } from "../lib/system-error.ts";

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

function ifForbidden(error: unknown): void {
  if (!hasCode(error, "EACCES", "EPERM")) throw error;
}

/** For a file that may be removed meanwhile. */
export function ifGone(error: unknown): null {
  if (hasCode(error, "ENOENT")) return null;
  throw error;
}
