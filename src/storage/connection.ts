import type { Database } from "bun:sqlite";
import { accessSync, constants, statSync } from "node:fs";
import { dirname } from "node:path";
import { inWords, isSystemTrouble } from "../lib/system-error.ts";

export const damaged = (path: string, finding: string): Error =>
  new Error(
    `the database ${path} is damaged (${finding.replaceAll("\n", " ")}); stop the server and put back the latest copy of the data folder`,
  );

/** SQLite finds some damage only when it reads there, be it in the first statement. */
export const isDamage = (error: unknown): error is Error =>
  error instanceof Error && "code" in error && /^SQLITE_(NOTADB|CORRUPT)/.test(String(error.code));

const ELSEWHERE = "give another data folder with --data";

/** An error of opening the file, in words. SQLite does not say why; the file and its folder do. */
export function unopened(path: string, error: unknown): unknown {
  if (!isSystemTrouble(error)) return error;
  const what = `${path} cannot be opened`;
  try {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
      return new Error(`${what}: it is a folder; move it away`);
    accessSync(dirname(path), constants.R_OK | constants.W_OK | constants.X_OK);
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (refusal) {
    return inWords(what, refusal, ELSEWHERE);
  }
  return inWords(what, error, ELSEWHERE);
}

export function prepareConnection(sqlite: Database): void {
  sqlite.run("PRAGMA busy_timeout = 5000");
  switchToWal(sqlite);
  sqlite.run("PRAGMA foreign_keys = ON");
  sqlite.run("PRAGMA synchronous = FULL");
  sqlite.run("PRAGMA cache_size = -8000");
  // Where the process has no file left to open, what is open already goes on being read and written.
  sqlite.run("PRAGMA temp_store = MEMORY");
  // 16 MiB of log between checkpoints: under load a page is then written back once for many changes.
  sqlite.run("PRAGMA wal_autocheckpoint = 4000");
  sqlite.run("PRAGMA journal_size_limit = 67108864");
}

/** SQLite's busy timeout does not hold for this switch, which another process may be making at the same moment. */
function switchToWal(sqlite: Database): void {
  for (let tries = 1; ; tries++) {
    try {
      sqlite.run("PRAGMA journal_mode = WAL");
      return;
    } catch (error) {
      const isBusy = error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY");
      if (!isBusy || tries === 100) throw error;
      Bun.sleepSync(50);
    }
  }
}

export function quickCheck(sqlite: Database, path: string): void {
  const finding = sqlite.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get()?.quick_check;
  if (finding !== "ok") throw damaged(path, finding ?? "no answer");
}
