import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A user who owns nothing. */
export const NOBODY = 65534;

/** Whether files can be given to that user: root can, but not in a container that has no other user. */
export const canGiveToNobody: boolean = process.getuid?.() === 0 && isGiven();

function isGiven(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "roost-nobody-"));
  try {
    chownSync(folder, NOBODY, NOBODY);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
