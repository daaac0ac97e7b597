import { Database } from "bun:sqlite";
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, writeFile as writeText } from "node:fs/promises";
import { dirname, join } from "node:path";
import { shortageOf } from "../lib/free-space.ts";
import { messageOf } from "../lib/message-of.ts";
import { makePrivateFolder, syncFolder } from "../lib/private-file.ts";
import { describeSystemError } from "../lib/system-error.ts";
import { holdFile } from "../storage/lock.ts";
import { SCHEMA_VERSION } from "../storage/migrate.ts";
import { type ArchivedFile, ArchiveError, readArchive, type Source, type Summary } from "./archive.ts";
import type { OnProgress } from "./create.ts";
import { type Contents, KEY_FILES } from "./snapshot.ts";

export interface Restored extends Contents {
  files: number;
  bytes: number;
}

export interface RestoreOptions {
  archive: Source;
  /** The file's size in bytes, for `onProgress`. */
  size: number;
  passphrase: string | null;
  /** Entries of the data folder that may be there before, besides key files. */
  mayStay?: readonly string[];
  onProgress?: OnProgress;
}

/** Names that a backup may hold. A workspace's own names are whatever its agent has chosen. */
const ALLOWED = new RegExp(
  `^(?:roost\\.db|audit-head\\.json|${KEY_FILES.map((name) => name.replaceAll(".", "\\.")).join("|")}` +
    `|models/[a-z0-9][a-z0-9._-]*/roost\\.json` +
    `|instances/[A-Za-z0-9_]+/(?:\\.staging|agents)/[^/]+(?:/[^/]+)*)$`,
);

/** Whether writing the name below a folder stays there. */
const isSafe = (name: string): boolean =>
  ALLOWED.test(name) && !name.includes("\0") && !name.split("/").some((part) => part === "." || part === "..");

/**
 * Unpacks a backup into a folder, which must be empty, and checks that its database is sound. Each file is on disk when
 * this resolves, if `durably`. Throws `ArchiveError`, or an error that says what there is no room for, leaving what it has
 * written.
 */
export async function unpack(
  folder: string,
  { archive, size, passphrase, onProgress = () => {} }: RestoreOptions,
  { durably }: { durably: boolean },
): Promise<Restored> {
  let done = 0;
  /** What there is no room for. */
  let lacking: { bytes: number; shortage: string } | null = null;
  const made = new Set<string>();
  const reading = readArchive<Contents>(archive, passphrase, async (file) => {
    if (!isSafe(file.name)) throw new ArchiveError(`it holds "${file.name}", which no backup of Roost has`);
    const shortage = lacking?.shortage ?? (await shortageOf(folder, file.size));
    if (shortage !== null) {
      // The rest is only read: whoever frees space has to know how much all of it needs, which the archive says nowhere.
      lacking = { bytes: (lacking?.bytes ?? 0) + file.size, shortage };
      for await (const _ of file.content);
    } else await writeFile(folder, file, made, durably);
    done += file.size;
    onProgress(done, Math.max(done, size));
  });
  const summary = await reading.catch(async (error: unknown) => {
    if (lacking === null || !(error instanceof ArchiveError)) throw error;
    throw await noRoomFor(folder, lacking);
  });
  if (lacking !== null) throw await noRoomFor(folder, lacking);
  if (durably) for (const one of made) syncFolder(one);
  return checked(folder, summary);
}

async function noRoomFor(folder: string, { bytes, shortage }: { bytes: number; shortage: string }): Promise<Error> {
  return new Error(`the rest of it ${(await shortageOf(folder, bytes)) ?? shortage}`);
}

async function writeFile(
  folder: string,
  { name, modifiedAtMs, content }: ArchivedFile,
  made: Set<string>,
  durably: boolean,
): Promise<void> {
  const path = join(folder, name);
  const parent = dirname(path);
  if (!made.has(parent)) {
    makePrivateFolder(parent);
    for (let one = parent; one.length >= folder.length && !made.has(one); one = dirname(one)) made.add(one);
  }
  const file = await open(path, "wx", 0o600);
  try {
    for await (const chunk of content) await file.writeFile(chunk);
    // By its time, the host knows that nobody has changed a file since an agent wrote it. In the middle of the millisecond:
    // the system may round down.
    const seconds = (modifiedAtMs + 0.5) / 1000;
    await file.utimes(seconds, seconds);
    if (durably) await file.sync();
  } finally {
    await file.close();
  }
}

function checked(folder: string, { about, files, bytes }: Summary<Contents>): Restored {
  const path = join(folder, "roost.db");
  if (!existsSync(path)) throw new ArchiveError("it holds no database");
  if (about.schema > SCHEMA_VERSION) {
    throw new ArchiveError(
      `it was made by a newer Roost (schema ${about.schema}; this one supports ${SCHEMA_VERSION}): use that one`,
    );
  }
  const finding = integrityOf(path);
  if (finding !== "ok") throw new ArchiveError(`its database is damaged (${finding})`);
  return { ...about, files, bytes };
}

function integrityOf(path: string): string {
  try {
    using sqlite = new Database(path, { readonly: true });
    const row = sqlite.query<{ integrity_check: string }, []>("PRAGMA integrity_check(1)").get();
    const broken = sqlite.query<{ table: string }, []>("PRAGMA foreign_key_check").get();
    if (row?.integrity_check !== "ok") return row?.integrity_check ?? "no answer";
    return broken === null ? "ok" : `a row of ${broken.table} refers to one that is missing`;
  } catch (error) {
    return messageOf(error);
  }
}

const UNFINISHED = /^\.restore-/;
/** A restore whose files are complete, and on their way into the data folder; `NAMES` lists them. */
const MOVING = ".restore-moving";
const NAMES = "names.json";
/** Held by the only restore into a folder. */
const LOCK = ".restore-lock";

/** What may be in the folder before: an interrupted restore, the keys that the backup lacks, a new disk's own folder. */
const mayBeThere = (name: string): boolean =>
  UNFINISHED.test(name) || name === "lost+found" || KEY_FILES.some((key) => key === name);

/**
 * Restores a backup into a data folder that is missing or empty but for key files. All of it is there when this resolves,
 * or none. Throws an error that says why not.
 */
export async function restoreBackup(dataDir: string, options: RestoreOptions): Promise<Restored> {
  // What is in the way stays untouched; but another restore, or one that was killed, may be moving its files in.
  if (!existsSync(join(dataDir, MOVING))) requireEmpty(dataDir, options.mayStay);
  return whileHolding(dataDir, () => restoreAlone(dataDir, options));
}

/** Does the work while no other process restores into the folder. */
async function whileHolding<T>(dataDir: string, work: () => Promise<T>): Promise<T> {
  const lock = join(dataDir, LOCK);
  const hold = await mkdir(dataDir, { recursive: true, mode: 0o700 })
    .then(() => holdFile(lock))
    .catch((error: unknown) => {
      throw describeSystemError(`${dataDir} cannot be written`, error);
    });
  if (hold === null) throw new Error(`another restore into ${dataDir} is under way; wait until it has ended`);
  try {
    return await work();
  } finally {
    await rm(lock, { force: true });
    hold.release();
  }
}

async function restoreAlone(dataDir: string, options: RestoreOptions): Promise<Restored> {
  await takeBack(dataDir);
  requireEmpty(dataDir, options.mayStay);
  const folder = join(dataDir, `.restore-${randomUUID()}`);
  try {
    await mkdir(folder, { mode: 0o700 });
    await removeUnfinished(dataDir, folder);
    const restored = await unpack(folder, options, { durably: true });
    const twice = restored.keys.find((name) => existsSync(join(dataDir, name)));
    if (twice !== undefined) {
      throw new Error(`${join(dataDir, twice)} exists already, and the backup has another; move yours elsewhere`);
    }
    await moveAll(folder, dataDir);
    return restored;
  } catch (error) {
    throw describeSystemError(`${dataDir} cannot be written`, error);
  } finally {
    await takeBack(dataDir);
    await rm(folder, { recursive: true, force: true });
    await rm(join(dataDir, MOVING), { recursive: true, force: true });
  }
}

async function moveAll(folder: string, dataDir: string): Promise<void> {
  // The database comes last: without it, this is no data folder, and no server starts on it.
  const names = (await readdir(folder)).sort((one, other) => Number(one === "roost.db") - Number(other === "roost.db"));
  const moving = join(dataDir, MOVING);
  await writeText(join(folder, NAMES), JSON.stringify(names), { mode: 0o600, flush: true });
  await rename(folder, moving);
  syncFolder(dataDir);
  for (const name of names) await rename(join(moving, name), join(dataDir, name));
  syncFolder(dataDir);
}

/** Removes what a restore that was killed had moved into the folder already: without its database, it is of no use. */
async function takeBack(dataDir: string): Promise<void> {
  const moving = join(dataDir, MOVING);
  if (!existsSync(moving) || existsSync(join(dataDir, "roost.db"))) return;
  const names = JSON.parse(await readFile(join(moving, NAMES), "utf8")) as string[];
  for (const name of names) {
    if (!existsSync(join(moving, name))) await rm(join(dataDir, name), { recursive: true, force: true });
  }
}

function requireEmpty(dataDir: string, mayStay: readonly string[] = []): void {
  if (!existsSync(dataDir)) return;
  const other = readdirSync(dataDir).find((name) => !mayBeThere(name) && !mayStay.includes(name));
  if (other === undefined) return;
  throw new Error(
    `${dataDir} is not empty: it has ${other}; a backup is restored into a new or empty folder only, named with --data`,
  );
}

async function removeUnfinished(dataDir: string, besides: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    const path = join(dataDir, name);
    if (UNFINISHED.test(name) && name !== LOCK && path !== besides) await rm(path, { recursive: true, force: true });
  }
}
