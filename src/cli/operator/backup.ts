import { existsSync, statSync } from "node:fs";
import { setPriority } from "node:os";
import { join } from "node:path";
import { ArchiveError, isEncrypted } from "../../backup/archive.ts";
import { createBackup } from "../../backup/create.ts";
import { locate, openDestination } from "../../backup/destination.ts";
import { type Restored, type RestoreOptions, restoreBackup } from "../../backup/restore.ts";
import { KEY_FILES } from "../../backup/snapshot.ts";
import { verifyBackup } from "../../backup/verify.ts";
import { type Config, ConfigError } from "../../config.ts";
import { isoTime } from "../../lib/clock.ts";
import type { AuditEntry } from "../../storage/audit.ts";
import { SCHEMA_VERSION } from "../../storage/migrate.ts";
import { Failure, UsageError } from "../failure.ts";
import { colours, note, printJson, printTable, say, shortSize, shortTime } from "../output.ts";
import { createProgress } from "../progress.ts";
import { roost } from "./advice.ts";
import {
  type DataOptions,
  databaseOf,
  namedBySettings,
  noteOwner,
  readConfig,
  readSettings,
  requireDataIn,
  versionOf,
  withDataOf,
} from "./data-folder.ts";
import { readPassphraseFile } from "./passphrase.ts";

interface BackupOptions extends DataOptions {
  json?: true;
  passphraseFile?: string;
}

/** A backup takes what the server leaves: the lowest priority but one. */
const NICE = 18;

/** `roost backup create`: the whole data folder in one file, while a server runs or not. */
export async function createBackupFile(file: string, options: BackupOptions & { includeKey?: true }): Promise<void> {
  const { config } = readConfig(options);
  requireDataIn(config);
  const passphrase = readPassphrase(options, config);
  const { destination, name } = locate(file);
  if (name === "") throw new UsageError(`"${file}" names no file`, "give the path of the file to write");
  setPriority(NICE);
  const progress = createProgress("Saving", { quiet: options.json === true });
  const created = await createBackup({
    dataDir: config.dataDir,
    destination,
    name,
    withKeys: options.includeKey === true,
    passphrase,
    onProgress: progress.show,
    untilAborted: () => untilInterrupted("backup"),
  }).finally(progress.end);
  const path = destination.pathOf(name);
  const { size, createdAt, keys } = created;
  await record(config, { action: "backup.create", subject: path, detail: { keys: keys.length > 0 } });
  if (options.json) {
    printJson({ file: path, size, createdAt, encrypted: passphrase !== null, keys });
    return;
  }
  say(
    colours.green("Saved"),
    ` ${config.dataDir} to ${path} (${shortSize(size)}${passphrase === null ? "" : ", encrypted"}).`,
  );
  const left = namedBySettings(config).filter((one) =>
    statSync(join(config.dataDir, one), { throwIfNoEntry: false })?.isFile(),
  );
  if (left.length > 0) note(`What your settings name is not in it: keep copies of ${left.join(", ")} elsewhere.`);
  if (keys.length === 0) {
    const without = present(config.dataDir).join(", ");
    if (without !== "") note(`The keys are not in it: keep copies of ${without} elsewhere, or use --include-key.`);
  } else if (passphrase === null) note("The keys are in it, unencrypted: whoever has the file can read every secret.");
}

/** Whoever ends this process gets what it has begun to write removed first. */
function untilInterrupted(what: "backup" | "check"): AbortSignal {
  const interrupted = new AbortController();
  const onSignal = () => interrupted.abort(new Failure(`the ${what} was interrupted`, "run the same command again"));
  process.once("SIGINT", onSignal);
  // A service manager and the server may both send one.
  process.on("SIGTERM", onSignal);
  return interrupted.signal;
}

const present = (dataDir: string): string[] => KEY_FILES.filter((name) => existsSync(join(dataDir, name)));

/** `roost backup verify`: restores it into a temporary folder and checks the database, the audit log and the books. */
export async function verifyBackupFile(file: string, options: BackupOptions): Promise<void> {
  const { config } = readConfig(options);
  const { path, opened } = await openBackup(file, options, config);
  setPriority(NICE);
  const progress = createProgress("Checking", { quiet: options.json === true });
  const signal = untilInterrupted("check");
  const found = await verifyBackup(config.dataDir, { ...opened, onProgress: progress.show }, signal)
    .finally(progress.end)
    .catch((error: unknown) => {
      throw refused(path, error);
    });
  if (options.json) printJson({ ok: true, file: path, ...found });
  else say(colours.green("Good"), `: ${path} ${described(found)}; its database, audit log and books are sound.`);
}

/** `roost backup restore`: into a data folder that is missing, or empty but for key files. */
export async function restoreBackupFile(file: string, options: BackupOptions): Promise<void> {
  const { config } = readConfig(options);
  const { dataDir } = config;
  const { path, opened } = await openBackup(file, options, config);
  const progress = createProgress("Restoring", { quiet: options.json === true });
  const restored = await restoreBackup(dataDir, {
    ...opened,
    mayStay: namedBySettings(config),
    onProgress: progress.show,
  })
    .finally(progress.end)
    .catch((error: unknown) => {
      throw refused(path, error);
    });
  await record(config, { action: "backup.restore", subject: path, detail: { createdAt: restored.createdAt } });
  noteOwner(dataDir, databaseOf(config));
  const missing = KEY_FILES.filter((name) => name !== "roost.toml" && !existsSync(join(dataDir, name)));
  if (options.json) {
    printJson({ dataDir, ...restored, missing });
    return;
  }
  say(colours.green("Restored"), ` ${dataDir} from ${path}, which ${described(restored)}.`);
  if (missing.length > 0) {
    say(
      `Before the first start, put ${missing.join(", ")} there from your copies: without them secrets cannot be read,`,
    );
    say("nobody stays signed in, and payments to the old address are not seen.");
  }
  for (const problem of problemsOf(options)) note(`Its settings stop a start: ${problem}.`);
  say(`Start it: ${roost("serve", dataDir)}`);
}

/** What is wrong with the settings as they are now, such as with those that were in a backup. */
function problemsOf(options: DataOptions): readonly string[] {
  try {
    readSettings(options);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

/** In the audit log, unless the next start has to migrate the database first. */
async function record(config: Config, entry: Omit<AuditEntry, "actor">): Promise<void> {
  if (versionOf(databaseOf(config)) !== SCHEMA_VERSION) return;
  await withDataOf(config, ({ audit }) => audit.append({ actor: "operator", ...entry }));
}

/** `roost backup list`: what is in `ROOST_BACKUP_TO`. */
export async function listBackups(options: BackupOptions): Promise<void> {
  const { config } = readConfig(options);
  const destination = openDestination(placeOf(config));
  const found = (await destination.list()).map(({ name, size, createdAtMs }) => ({
    file: destination.pathOf(name),
    size,
    createdAt: isoTime(createdAtMs),
    encrypted: isEncrypted(name),
  }));
  if (options.json) printJson(found);
  else
    printTable(
      ["TIME", "SIZE", "ENCRYPTED", "FILE"],
      found.map(({ file, size, createdAt, encrypted }) => [
        shortTime(createdAt),
        shortSize(size),
        encrypted ? "yes" : "no",
        file,
      ]),
      `There is no backup in ${destination.pathOf("")}: make one with backup create, or set ROOST_BACKUP_EVERY.`,
      { leaveOut: ["ENCRYPTED"], shorten: ["FILE"] },
    );
}

/** Where scheduled backups are kept. */
export const placeOf = ({ backupTo, dataDir }: Pick<Config, "backupTo" | "dataDir">): string =>
  backupTo ?? join(dataDir, "backups");

async function openBackup(
  file: string,
  options: BackupOptions,
  config: Config,
): Promise<{ path: string; opened: RestoreOptions }> {
  const { destination, name } = locate(file);
  const path = destination.pathOf(name);
  const found = name === "" ? null : await destination.find(name);
  if (found === null) {
    throw new Failure(`there is no backup ${path}`, `see what there is: ${roost("backup list", config.dataDir)}`);
  }
  return { path, opened: { archive: found.content, size: found.size, passphrase: readPassphrase(options, config) } };
}

/** The first line of the file, without its end. */
function readPassphrase(options: BackupOptions, config: Config): string | null {
  const path = options.passphraseFile ?? config.backupPassphraseFile;
  return path === null ? null : readPassphraseFile(path);
}

function refused(path: string, error: unknown): unknown {
  return error instanceof ArchiveError
    ? new Failure(`${path} cannot be used: ${error.message}`, null, { cause: error })
    : error;
}

const described = ({ createdAt, files, bytes, keys, schema }: Restored): string =>
  `is of ${shortTime(createdAt)}, with ${files} ${files === 1 ? "file" : "files"} (${shortSize(bytes)}), ` +
  `${keys.length === 0 ? "without keys" : `with ${keys.join(", ")}`}, schema ${schema}`;
