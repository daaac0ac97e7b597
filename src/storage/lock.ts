import { Database } from "bun:sqlite";
import { chmodSync } from "node:fs";
import { join } from "node:path";

/** A database that nothing refers to is collected, and its lock with it: so a lock is held here, whatever its owner does. */
const held = new Set<Database>();

/**
 * Makes this process the only server on a data folder until `release` or its death. The lock is SQLite's own file lock
 * on an empty database, so the operating system drops it however the process ends. Throws when another server holds it.
 */
export function lockDataFolder(dataDir: string): { release(): void } {
  const path = join(dataDir, "server.lock");
  const lock = new Database(path, { create: true });
  try {
    chmodSync(path, 0o600);
    lock.run("PRAGMA journal_mode = DELETE");
    lock.run("BEGIN EXCLUSIVE");
  } catch (cause) {
    lock.close();
    throw new Error(`another roost is serving ${dataDir}; stop it, or give this one a folder of its own with --data`, {
      cause,
    });
  }
  held.add(lock);
  return {
    release() {
      held.delete(lock);
      lock.close();
    },
  };
}
