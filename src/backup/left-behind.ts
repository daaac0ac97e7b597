import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { DAY_MS } from "../lib/calendar.ts";
import { hasCode } from "../lib/system-error.ts";

/** Removes what processes that were killed have left in a folder: names of this form that have not changed for a day. */
export async function removeLeftBehind(folder: string, form: RegExp): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!form.test(name)) continue;
    const path = join(folder, name);
    const found = await stat(path).catch(ifGone);
    if (found && Date.now() - found.mtimeMs > DAY_MS) await rm(path, { recursive: true, force: true });
  }
}

/** For a file that may be removed meanwhile. */
export function ifGone(error: unknown): null {
  if (hasCode(error, "ENOENT")) return null;
  throw error;
}
