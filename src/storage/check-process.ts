import { Database } from "bun:sqlite";
import { constants, setPriority } from "node:os";
import { isDamage, waitForOthers } from "./connection.ts";

/** How `database-check FILE` says that it has found damage: with this exit code, and the finding as its output. */
export const DAMAGED = 3;

/**
 * Reads a large database beside the server that writes it, table by table, so that no snapshot is held for long. Ends the
 * process.
 */
export function runCheckProcess(path: string): never {
  setPriority(constants.priority.PRIORITY_LOW);
  try {
    using sqlite = new Database(path, { readonly: true });
    waitForOthers(sqlite);
    const tables = sqlite.query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    for (const { name } of tables) {
      const check = `PRAGMA quick_check(${name})`;
      const found = sqlite.query<{ quick_check: string }, []>(check).get()?.quick_check;
      if (found !== "ok") end(found ?? "no answer");
    }
  } catch (error) {
    if (isDamage(error)) end(error.message);
    throw error;
  }
  process.exit(0);
}

function end(finding: string): never {
  process.stdout.write(finding);
  process.exit(DAMAGED);
}
