import type { Database } from "bun:sqlite";
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { createPrivateFile } from "../lib/private-file.ts";
import { describeSystemError, isSystemError } from "../lib/system-error.ts";

export const damagedError = (path: string, finding: string): Error =>
  new Error(
    `the database ${path} is damaged (${finding.replaceAll("\n", " ")}); stop the server and restore the latest copy of the data folder`,
  );

/** SQLite reports some damage only when a statement reads the damaged page. */
export const isDamage = (error: unknown): error is Error =>
  error instanceof Error && "code" in error && /^SQLITE_(NOTADB|CORRUPT)/.test(String(error.code));

/** SQLite opens none above 511, and its WAL and journal have longer names. */
const MAX_PATH_BYTES = 500;

const FIX = "choose another data folder with --data";

/** Says why the file could not be opened. SQLite does not; the file and its folder show it. */
export function openError(path: string, error: unknown): unknown {
  if (!isSystemError(error)) return error;
  const what = `${path} cannot be opened`;
  if (Buffer.byteLength(path) > MAX_PATH_BYTES)
    return new Error(`${what}: its path is longer than ${MAX_PATH_BYTES} bytes; ${FIX}`, { cause: error });
  try {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
      return new Error(`${what}: it is a folder; move it elsewhere`);
    accessSync(dirname(path), constants.R_OK | constants.W_OK | constants.X_OK);
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (refusal) {
    return describeSystemError(what, refusal, FIX);
  }
  return describeSystemError(what, error, FIX);
}

/** What a host that has run leaves beside its database, and a new one has only if it was put there. */
const OF_A_HOST = ["host-keys.json", "audit-head.json", "master.key", "wallet.json"];

/**
 * Why a database of 0 bytes must not be opened: SQLite would take it for a new one, and the host would begin anew without
 * a word. Null unless other files show that there was one.
 */
export function emptiedError(path: string): Error | null {
  if (statSync(path, { throwIfNoEntry: false })?.size !== 0) return null;
  const others = OF_A_HOST.filter((name) => existsSync(join(dirname(path), name)));
  if (others.length === 0) return null;
  const head = others.includes("audit-head.json") ? " and audit-head.json" : "";
  return new Error(
    `the database ${path} is empty, though ${others.join(", ")} beside it ${others.length === 1 ? "is" : "are"} of a ` +
      `host that has one; restore the latest copy of the data folder, or remove roost.db${head} to begin anew`,
  );
}

/**
 * SQLite would create the file readable by all; its WAL takes the same mode and owner. Throws if an existing one has lost
 * its content.
 */
export function createPrivately(path: string): void {
  const emptied = emptiedError(path);
  if (emptied !== null) throw emptied;
  createPrivateFile(path);
}

/** From now on, a statement waits this long for another process's commit; then it throws `SQLITE_BUSY`. */
export const waitForOthers = (sqlite: Database, ms = 5_000): void => void sqlite.run(`PRAGMA busy_timeout = ${ms}`);

export function prepareConnection(sqlite: Database): void {
  waitForOthers(sqlite);
  switchToWal(sqlite);
  sqlite.run("PRAGMA foreign_keys = ON");
  sqlite.run("PRAGMA synchronous = FULL");
  sqlite.run("PRAGMA cache_size = -8000");
  // Temporary files would fail when the process has no file descriptors left; memory does not.
  sqlite.run("PRAGMA temp_store = MEMORY");
  // 16 MiB of WAL between checkpoints: under load a page is then written back once for many changes.
  sqlite.run("PRAGMA wal_autocheckpoint = 4000");
  sqlite.run("PRAGMA journal_size_limit = 67108864");
}

/** The size of a copy of the database, which has no free pages. */
export function bytesOfCopy(sqlite: Database): number {
  const size = `SELECT (page_count - freelist_count) * page_size AS bytes
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size`;
  return sqlite.query<{ bytes: number }, []>(size).get()?.bytes ?? 0;
}

/** SQLite's busy timeout does not cover this switch, which another process may be making at the same moment. */
function switchToWal(sqlite: Database): void {
  for (let tries = 1; ; tries++) {
    try {
      sqlite.run("PRAGMA journal_mode = WAL");
      return;
    } catch (error) {
      if (!isBusy(error) || tries === 100) throw error;
      Bun.sleepSync(50);
    }
  }
}

/** Whether another process holds what was asked for. */
export const isBusy = (error: unknown): boolean =>
  error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY");

/** A larger one would keep a start, or a command, waiting: the server checks it in the background. */
export const CHECKED_AT_OPEN_BYTES = 32 * 1024 * 1024;

/** Checks a small database as a whole, of a large one its schema. */
export function quickCheck(sqlite: Database, path: string): void {
  const { size } = statSync(path);
  const check = size <= CHECKED_AT_OPEN_BYTES ? "quick_check(1)" : "quick_check(sqlite_schema)";
  const finding = sqlite.query<{ quick_check: string }, []>(`PRAGMA ${check}`).get()?.quick_check;
  if (finding !== "ok") throw damagedError(path, finding ?? "no answer");
}
