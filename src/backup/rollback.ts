import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { syncFile, syncFolder } from "../lib/private-file.ts";
import { lockDataFolder } from "../storage/lock.ts";
import { copiesBeforeMigrations, schemaVersion } from "../storage/migrate.ts";

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
 * aside, with the workspaces of which the older one knows nothing; the files of other workspaces stay as they are.
 * Throws if a server runs, or if there is nothing to go back to. A crash in between leaves either database in place.
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
    const keptIn = join(dataDir, "backups", `before-rollback-from-${from}-${stamp()}`);
    mkdirSync(keptIn, { mode: 0o700 });
    const next = `${path}.rollback`;
    copyFileSync(older.path, next);
    syncFile(next);
    keepUnknownWorkspaces(dataDir, next, keptIn);
    linkSync(path, join(keptIn, "roost.db"));
    syncFolder(keptIn);
    renameSync(next, path);
    replaceAuditHead(dataDir, older.auditHead, keptIn);
    syncFolder(dataDir);
    return { from, to: older.version, stateOfMs: older.atMs, keptIn };
  } finally {
    lock.release();
  }
}

/** Writes the WAL back, so that the database is one file. Returns its schema. */
function flushed(path: string): number {
  using sqlite = new Database(path, { readwrite: true });
  sqlite.run("PRAGMA busy_timeout = 5000");
  const row = sqlite.query<{ busy: number }, []>("PRAGMA wal_checkpoint(TRUNCATE)").get();
  if (row?.busy !== 0) throw new Error("another command uses the database; try again when it has ended");
  return schemaVersion(sqlite);
}

/** The older server would remove them: for it they are left over from something that was never committed. */
function keepUnknownWorkspaces(dataDir: string, database: string, keptIn: string): void {
  const root = join(dataDir, "instances");
  if (!existsSync(root)) return;
  using sqlite = new Database(database, { readonly: true });
  const isInstance = sqlite.query("SELECT 1 FROM instances WHERE instance_id = ?");
  const isAgent = sqlite.query("SELECT 1 FROM agents WHERE instance_id = ? AND slug = ?");
  for (const instanceId of readdirSync(root)) {
    const kept = join(keptIn, "instances", instanceId);
    if (isInstance.get(instanceId) === null) {
      mkdirSync(join(kept, ".."), { recursive: true, mode: 0o700 });
      renameSync(join(root, instanceId), kept);
      continue;
    }
    const agents = join(root, instanceId, "agents");
    for (const slug of existsSync(agents) ? readdirSync(agents) : []) {
      if (isAgent.get(instanceId, slug) !== null) continue;
      mkdirSync(join(kept, "agents"), { recursive: true, mode: 0o700 });
      renameSync(join(agents, slug), join(kept, "agents", slug));
    }
  }
}

function replaceAuditHead(dataDir: string, older: string | null, keptIn: string): void {
  const head = join(dataDir, "audit-head.json");
  if (existsSync(head)) renameSync(head, join(keptIn, "audit-head.json"));
  if (older !== null) copyFileSync(older, head);
  else rmSync(head, { force: true });
}

const stamp = (): string => new Date().toISOString().replaceAll(/[:.]/g, "-");
