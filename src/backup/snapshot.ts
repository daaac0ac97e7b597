import { Database } from "bun:sqlite";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { shortageOf } from "../lib/free-space.ts";
import { makePrivateFolder } from "../lib/private-file.ts";
import { MANIFEST, manifestPath } from "../models/store/manifest.ts";
import { listModels } from "../models/store/store.ts";
import { bytesOfCopy, openError, waitForOthers } from "../storage/connection.ts";
import { schemaVersion } from "../storage/migrate.ts";
import type { ArchivedFile } from "./archive.ts";
import { fileOf, folderAt, unreadable } from "./files.ts";
import { removeLeftBehind } from "./left-behind.ts";
import { filesOfWorkspaces } from "./workspaces.ts";

/** The files that hold keys or passwords: in a backup only if its owner asks for them. */
export const KEY_FILES = ["master.key", "host-keys.json", "wallet.json", "roost.toml"] as const;

/** The newest signed checkpoint of the audit log, which must never be newer than the database. */
const AUDIT_HEAD = "audit-head.json";

/** What a backup is of. */
export interface Contents {
  /** The schema of the database. */
  schema: number;
  /** ISO 8601. */
  createdAt: string;
  /** Those of `KEY_FILES` that are in it. */
  keys: string[];
  /** How many of its agents were removed, or emptied, before their files were saved. Earlier builds did not say. */
  emptiedAgents?: number;
}

export interface Snapshot {
  /** Each file, read when its turn comes. */
  files(): AsyncIterable<ArchivedFile>;
  /** Whole once all of `files` are read. */
  contents(): Contents;
  /** About how many bytes `files` will yield. */
  expectedBytes: number;
  /** Removes what the snapshot keeps on disk. */
  close(): Promise<void>;
}

const LEFT_BEHIND = /^\.(work|verify)-|^\.migration$|^\..*\.unfinished$/;

/** A new folder for work on a backup in the data folder: beside finished ones, on the disk that has room for them. */
export async function makeWorkFolder(dataDir: string, kind: "work" | "verify"): Promise<string> {
  const backups = join(dataDir, "backups");
  const folder = join(backups, `.${kind}-${randomUUID()}`);
  makePrivateFolder(folder);
  await removeLeftBehind(backups, LEFT_BEHIND, folder);
  return folder;
}

/**
 * The state of a data folder at one moment, with or without a running server: a copy of the database, and the
 * workspaces' files. A file that changes meanwhile is in it as it was or as it is; the next start compares the database
 * with the files, as it does after a crash. Throws if there is no database, or no room for its copy.
 */
export async function takeSnapshot(dataDir: string, { withKeys }: { withKeys: boolean }): Promise<Snapshot> {
  const path = join(dataDir, "roost.db");
  if (!existsSync(path)) throw new Error(`there is no database in ${dataDir}`);
  const folder = await makeWorkFolder(dataDir, "work");
  const copy = join(folder, "roost.db");
  const close = () => rm(folder, { recursive: true, force: true });
  try {
    // Before the database: a checkpoint that is signed meanwhile must not be named by a file older than its row.
    const head = await readWhole(join(dataDir, AUDIT_HEAD), AUDIT_HEAD);
    const shortage = await shortageOf(folder, bytesOfDatabase(path));
    if (shortage !== null) throw new Error(`a copy of the database ${shortage}`);
    const schema = copyDatabase(path, copy);
    const keys = withKeys ? KEY_FILES.filter((name) => existsSync(join(dataDir, name))) : [];
    const createdAt = new Date().toISOString();
    let emptiedAgents = 0;
    return {
      async *files() {
        if (head !== null) yield head;
        for (const name of keys) {
          const file = await readWhole(join(dataDir, name), name);
          if (file !== null) yield file;
        }
        yield* fileOf(folderAt(folder), "roost.db", "roost.db");
        yield* manifestsOfModels(dataDir);
        yield* filesOfWorkspaces(dataDir, copy, () => {
          emptiedAgents += 1;
        });
      },
      contents: () => ({ schema, createdAt, keys: [...keys], emptiedAgents }),
      expectedBytes: (await stat(copy)).size + bytesOfWorkspaces(copy),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function bytesOfDatabase(path: string): number {
  try {
    using sqlite = new Database(path, { readonly: true });
    waitForOthers(sqlite);
    return bytesOfCopy(sqlite);
  } catch (error) {
    throw openError(path, error);
  }
}

/** Copies the database as it is at one moment, while others write. Returns the version of its schema. */
function copyDatabase(from: string, to: string): number {
  try {
    using sqlite = new Database(from, { readonly: true });
    waitForOthers(sqlite);
    sqlite.run("VACUUM INTO ?", [to]);
    return schemaVersion(sqlite);
  } catch (error) {
    throw openError(from, error);
  }
}

/** As the database has it; 0 in a schema from before sizes were kept there. */
function bytesOfWorkspaces(path: string): number {
  using sqlite = new Database(path, { readonly: true });
  try {
    const sum = "SELECT coalesce(sum(size), 0) AS bytes FROM workspace_files";
    return sqlite.query<{ bytes: number }, []>(sum).get()?.bytes ?? 0;
  } catch {
    return 0;
  }
}

/** A small file, read at once; null if it is missing. */
async function readWhole(path: string, name: string): Promise<ArchivedFile | null> {
  const file = Bun.file(path);
  if (!(await file.exists())) return null;
  const bytes = await file.bytes().catch(unreadable(path));
  return { name, size: bytes.length, modifiedAtMs: file.lastModified, content: chunksOf(bytes) };
}

async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** The models themselves are large, and where they came from has them still. */
async function* manifestsOfModels(dataDir: string): AsyncGenerator<ArchivedFile> {
  for (const { manifest, folder } of listModels(dataDir)) {
    const file = await readWhole(manifestPath(folder), `models/${manifest.name}/${MANIFEST}`);
    if (file !== null) yield file;
  }
}
