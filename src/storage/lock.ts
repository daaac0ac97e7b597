import { Database } from "bun:sqlite";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createPrivateFile } from "../lib/private-file.ts";
import { isBusy, openError, waitForOthers } from "./connection.ts";

/** Keeps locks from being garbage-collected, which would release them. */
const held = new Set<Database>();

/** `serverOf` holds the lock for a moment: a new server waits for that, but not for another server. */
const PROBE_TIMEOUT_MS = 500;

export interface DataFolderLock {
  /** Writes the server's address into the folder, for commands on this machine, until `release`; and digests of settings. */
  announce(url: string, settings?: Record<string, string>): void;
  release(): void;
}

const lockFile = (dataDir: string): string => join(dataDir, "server.lock");
const addressFile = (dataDir: string): string => join(dataDir, "server.json");

/**
 * Makes this process the only server on a data folder until `release` or its death. The lock is SQLite's own file lock
 * on an empty database, so the operating system drops it however the process ends. Throws when another server holds it.
 */
export function lockDataFolder(dataDir: string, waitMs: number = PROBE_TIMEOUT_MS): DataFolderLock {
  const path = lockFile(dataDir);
  const lock = openLock(path);
  try {
    waitForOthers(lock, waitMs);
    lock.run("PRAGMA journal_mode = DELETE");
    lock.run("BEGIN EXCLUSIVE");
    // A server that was killed leaves its address behind.
    rmSync(addressFile(dataDir), { force: true });
  } catch (cause) {
    lock.close();
    if (!isBusy(cause)) throw openError(path, cause);
    throw anotherServer(dataDir, cause);
  }
  held.add(lock);
  return {
    announce(url, settings = {}) {
      const path = addressFile(dataDir);
      writeFileSync(`${path}.tmp`, JSON.stringify({ url, settings }), { mode: 0o600 });
      renameSync(`${path}.tmp`, path);
    },
    release() {
      rmSync(addressFile(dataDir), { force: true });
      held.delete(lock);
      lock.close();
    },
  };
}

/** Holds a file, created if missing, until `release` or the process's death; null if another process holds it. */
export function holdFile(path: string): { release(): void } | null {
  const lock = openLock(path);
  try {
    lock.run("PRAGMA journal_mode = DELETE");
    lock.run("BEGIN EXCLUSIVE");
  } catch (cause) {
    lock.close();
    if (!isBusy(cause)) throw openError(path, cause);
    return null;
  }
  held.add(lock);
  return {
    release() {
      held.delete(lock);
      lock.close();
    },
  };
}

const anotherServer = (dataDir: string, cause?: unknown): Error =>
  new Error(`another roost is serving ${dataDir}; stop it, or choose another folder with --data`, { cause });

/** Throws what `lockDataFolder` would if another server holds the folder. Changes nothing on disk. */
export function requireNoServer(dataDir: string): void {
  if (serverOf(dataDir) !== null) throw anotherServer(dataDir);
}

function openLock(path: string): Database {
  try {
    createPrivateFile(path);
    return new Database(path, { readwrite: true });
  } catch (error) {
    throw openError(path, error);
  }
}

/**
 * The server that runs on the folder, or null; its `url` is null until it listens. `settings` are the digests that it has
 * announced. Changes nothing on disk. Throws if the
 * lock cannot be read.
 */
export function serverOf(dataDir: string): { url: string | null; settings: Record<string, string> } | null {
  if (!existsSync(lockFile(dataDir)) || !isHeld(lockFile(dataDir))) return null;
  try {
    const { url, settings } = JSON.parse(readFileSync(addressFile(dataDir), "utf8"));
    return { url: typeof url === "string" ? url : null, settings: settings ?? {} };
  } catch {
    return { url: null, settings: {} };
  }
}

function isHeld(path: string): boolean {
  let lock: Database | undefined;
  try {
    lock = new Database(path, { readonly: true });
    lock.query("SELECT 1 FROM sqlite_schema").get();
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    throw openError(path, error);
  } finally {
    lock?.close();
  }
}
