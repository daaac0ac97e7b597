import { Database } from "bun:sqlite";
import fs from "node:fs";
import { join } from "node:path";
import { messageOf } from "../lib/message-of.ts";
import { copyPrivateFile, makePrivateFolder, syncFolder } from "../lib/private-file.ts";
import { waitForOthers } from "../storage/connection.ts";
import { lockDataFolder } from "../storage/lock.ts";
import { copiesBeforeMigrations, type DatabaseCopy, schemaVersion } from "../storage/migrate.ts";
import { type Moves, movesBetween, stageMoves } from "./rollback-workspaces.ts";
import { finishChanges } from "./workspaces.ts";

export interface RolledBack {
  /** The schema before and after. */
  from: number;
  to: number;
  /** When the older state was left, in milliseconds since 1970. */
  stateOfMs: number;
  /** Where the newer state is. */
  keptIn: string;
}

/**
 * Puts the database back to what it was before the last migration, for the older binary. The newer database is kept
 * aside, with the workspaces of which the older one knows nothing; the files of other workspaces stay as they are, where the
 * older one has their agents. Throws if a server runs, or if there is nothing sound to go back to. A crash leaves the newer
 * state as it was, or the older one with all of the newer kept aside, and the rest to the next start.
 */
export function rollBack(dataDir: string): RolledBack {
  const lock = lockDataFolder(dataDir);
  try {
    const path = join(dataDir, "roost.db");
    const from = flushed(path);
    const older = copiesBeforeMigrations(dataDir).find(({ version }) => version < from);
    if (older === undefined) {
      throw new Error(
        `there is nothing to go back to: ${join(dataDir, "backups")} has no copy from before a migration`,
      );
    }
    requireSound(older);
    const keptIn = join(dataDir, "backups", `before-rollback-from-${from}-${stamp()}`);
    makePrivateFolder(keptIn);
    const next = `${path}.rollback`;
    copyPrivateFile(older.path, next);
    const { unknown, changes } = movesTo(dataDir, path, next);
    for (const folder of unknown) linkTree(join(dataDir, folder), join(keptIn, folder));
    fs.linkSync(path, join(keptIn, "roost.db"));
    stageMoves(dataDir, next, changes);
    replaceAuditHead(dataDir, older.auditHead, keptIn);
    removeMemory(dataDir, keptIn);
    syncFolder(keptIn);
    fs.renameSync(next, path);
    syncFolder(dataDir);
    // The older server would do that too: for it they are left over from something that was never committed.
    for (const folder of unknown) fs.rmSync(join(dataDir, folder), { recursive: true, force: true });
    // And that: only now are these places free.
    finishMoves(dataDir, path);
    return { from, to: older.version, stateOfMs: older.atMs, keptIn };
  } finally {
    lock.release();
  }
}

/** Throws if the copy is not a whole database of its schema. */
function requireSound({ path, version }: DatabaseCopy): void {
  const finding = findingOf(path, version);
  if (finding === null) return;
  throw new Error(`${path} is damaged (${finding}); remove it to go back to an earlier copy, if there is one`);
}

function findingOf(path: string, version: number): string | null {
  try {
    using sqlite = new Database(path, { readonly: true });
    const found = schemaVersion(sqlite);
    if (found !== version) return `schema ${found} instead of ${version}`;
    const row = sqlite.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get();
    return row?.quick_check === "ok" ? null : (row?.quick_check ?? "no answer");
  } catch (error) {
    return messageOf(error);
  }
}

/** Writes the WAL back, so that the database is one file. Returns its schema. */
function flushed(path: string): number {
  using sqlite = new Database(path, { readwrite: true });
  waitForOthers(sqlite);
  const row = sqlite.query<{ busy: number }, []>("PRAGMA wal_checkpoint(TRUNCATE)").get();
  if (row?.busy !== 0) throw new Error("another command uses the database; try again when it has ended");
  return schemaVersion(sqlite);
}

/** What is to happen to the workspaces, once everything that the newer database has committed has happened to them. */
function movesTo(dataDir: string, path: string, next: string): Moves {
  // A connection that only reads would leave its WAL beside the database that takes this one's place.
  using newer = new Database(path, { readwrite: true });
  using older = new Database(next, { readonly: true });
  finishChanges(dataDir, newer);
  return movesBetween(dataDir, newer, older);
}

function finishMoves(dataDir: string, path: string): void {
  using sqlite = new Database(path, { readonly: true });
  finishChanges(dataDir, sqlite);
}

/** The same files under another name as well: changes of a workspace replace files, and never write into one. */
function linkTree(from: string, to: string): void {
  makePrivateFolder(to);
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) linkTree(source, target);
    else fs.linkSync(source, target);
  }
  syncFolder(to);
}

/** Before the database is replaced: a checkpoint may be older than the database, but never newer. */
function replaceAuditHead(dataDir: string, older: string | null, keptIn: string): void {
  const head = join(dataDir, "audit-head.json");
  if (fs.existsSync(head)) copyPrivateFile(head, join(keptIn, "audit-head.json"));
  if (older === null) {
    fs.rmSync(head, { force: true });
    return;
  }
  const next = `${head}.rollback`;
  copyPrivateFile(older, next);
  fs.renameSync(next, head);
}

/**
 * Before the database is replaced: the indexes go up to messages that the older one does not have, and would pass over those
 * that get their numbers. Without its folder, either server builds them anew, so it goes all at once.
 */
function removeMemory(dataDir: string, keptIn: string): void {
  const [memory, removed] = [join(dataDir, "memory"), join(keptIn, "memory")];
  if (!fs.existsSync(memory)) return;
  fs.renameSync(memory, removed);
  fs.rmSync(removed, { recursive: true, force: true });
}

const stamp = (): string => new Date().toISOString().replaceAll(/[:.]/g, "-");
