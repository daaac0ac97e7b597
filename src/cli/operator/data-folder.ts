import { Database } from "bun:sqlite";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Foundation, openFoundation } from "../../app/foundation.ts";
import type { Address } from "../../chain/networks.ts";
import { hasValidChecksum } from "../../chain/wallet.ts";
import { type Config, ConfigError, type LoadedConfig, loadConfig } from "../../config.ts";
import { waitForOthers } from "../../storage/connection.ts";
import { lockDataFolder, serverOf } from "../../storage/lock.ts";
import { SCHEMA_VERSION, schemaVersion } from "../../storage/migrate.ts";
import { makePrivate, PRIVATE_FILES } from "../../storage/private-folder.ts";
import { Failure, readableMessage } from "../failure.ts";
import { note } from "../output.ts";
import { roost } from "./advice.ts";
import { readPassphraseFile } from "./passphrase.ts";

export interface DataOptions {
  data?: string;
}

export interface ServeSettings extends DataOptions {
  host?: string;
  port?: string;
}

/**
 * The settings as `serve` would see them from here, for a command: it says so if a server on the folder has other ones.
 * Throws `ConfigError`.
 */
export function readConfig(options: DataOptions): LoadedConfig {
  const loaded = readSettings(options);
  noteOtherSettings(loaded);
  return loaded;
}

let isNoted = false;

/** Says once which settings a running server has otherwise in its own environment, which no command sees. */
export function noteOtherSettings({ config: { dataDir }, digests }: LoadedConfig): void {
  if (isNoted) return;
  isNoted = true;
  const others = Object.entries(settingsOfServer(dataDir)).filter(([name, digest]) => digests.get(name) !== digest);
  if (others.length === 0) return;
  const names = others.map(([name]) => name).join(", ");
  note(
    `the running server has other settings in its environment than this command: ${names}; ` +
      `put them into ${join(dataDir, "roost.toml")}, which both read`,
  );
}

/** None if it is not known: what follows reports that. */
function settingsOfServer(dataDir: string): Record<string, string> {
  try {
    return serverOf(dataDir)?.settings ?? {};
  } catch {
    return {};
  }
}

/** The settings, without a word about those of a running server. Throws `ConfigError`. */
export function readSettings({ data, host, port }: ServeSettings): LoadedConfig {
  return loadConfig(process.env, {
    ...(data === undefined ? {} : { ROOST_DATA_DIR: data }),
    ...(host === undefined ? {} : { ROOST_HOST: host }),
    ...(port === undefined ? {} : { ROOST_PORT: port }),
  });
}

/** Also checks the wallet's checksum, which takes a moment, and the passphrase of backups. Throws `ConfigError`. */
export async function readCheckedConfig(options: ServeSettings): Promise<LoadedConfig> {
  const loaded = readSettings(options);
  const { wallet, backupPassphraseFile } = loaded.config;
  try {
    if (backupPassphraseFile !== null) readPassphraseFile(backupPassphraseFile);
  } catch (error) {
    throw new ConfigError(`ROOST_BACKUP_PASSPHRASE_FILE: ${readableMessage(error)}`);
  }
  if (wallet === null || (await hasValidChecksum(wallet as Address))) return loaded;
  throw new ConfigError(
    `ROOST_WALLET is "${wallet}": expected an address with a valid checksum in its capital letters (EIP-55)`,
  );
}

const MIGRATION_WAIT_MS = 5000;
const LOOK_AGAIN_MS = 50;

/**
 * Opens the data folder for one operator command, with or without a running server, and closes it afterwards. Only
 * `serve` creates a data folder: if it does not exist, `--data` was probably mistyped. With `create`, an existing empty
 * folder becomes one, so that a host can be prepared before its first start.
 */
export async function withData<T>(
  options: DataOptions,
  absent: "create" | "refuse",
  work: (parts: Foundation & { config: Config }) => T | Promise<T>,
): Promise<T> {
  const { config } = readConfig(options);
  if (!(absent === "create" && isPrepared(config))) requireDataIn(config);
  return withDataOf(config, work);
}

/** The same with settings that were read before. */
export async function withDataOf<T>(
  config: Config,
  work: (parts: Foundation & { config: Config }) => T | Promise<T>,
): Promise<T> {
  const foundation = await openCurrent(config);
  try {
    return await work({ ...foundation, config });
  } finally {
    foundation.store.close();
  }
}

/** Says so if the data folder's owner, as whom a server may run, could not use what root has put there. */
export function noteOwner(dataDir: string, path: string): void {
  const { uid, gid } = statSync(dataDir);
  if (statSync(path).uid === uid) return;
  note(`${dataDir} belongs to another user. If the server runs as that user: chown -R ${uid}:${gid} '${dataDir}'`);
}

/** Throws if there is no database in the data folder. */
export function requireDataIn(config: Pick<Config, "dataDir">): void {
  if (existsSync(databaseOf(config))) return;
  const here = dataHere();
  throw new Failure(
    `there is no Roost data in ${config.dataDir}`,
    here === null
      ? `is --data right? The first start creates it: ${roost("serve", config.dataDir)}`
      : `there is some in ./data: add --data ${here}`,
  );
}

/** `./data`, which `npm start` serves, if it is a data folder; null if not. */
export const dataHere = (): string | null => (existsSync(databaseOf({ dataDir: "./data" })) ? "./data" : null);

/** Names of a foreign folder's entries in its error. */
const MAX_NAMED = 3;

/**
 * Throws if the folder belongs to something else: it exists and has entries, but no database and nothing that a new host
 * has. Call it before anything in the folder is changed.
 */
export function requireOwnFolder(config: Config): void {
  const { dataDir } = config;
  if (existsSync(databaseOf(config))) return;
  const others = entriesOf(dataDir).filter((name) => !isOfPreparing(name, config));
  if (others.length === 0) return;
  const more = others.length > MAX_NAMED ? ` and ${others.length - MAX_NAMED} more` : "";
  throw new Failure(
    `${dataDir} has no roost.db, but ${others.sort().slice(0, MAX_NAMED).join(", ")}${more}: it is not a data folder, ` +
      "and is left as it is",
    "use --data with a new or empty folder, or one that has a roost.db",
  );
}

/** None if the folder is missing or unreadable: what follows reports that. */
function entriesOf(dataDir: string): string[] {
  try {
    return readdirSync(dataDir);
  } catch {
    return [];
  }
}

/**
 * Files that may be there before the first start: settings and what they name, keys, those of a start in progress, a new
 * disk's own.
 */
const isOfPreparing = (name: string, config: Config): boolean =>
  PRIVATE_FILES.some((own) => own === name) ||
  /^(server\.|roost\.db-|lost\+found$)/.test(name) ||
  namedBySettings(config).includes(name);

/** The entries of the data folder that the settings lead to: files of the operator's own, or a folder of backups. */
export const namedBySettings = ({ dataDir, modelPrices, backupTo, backupPassphraseFile }: Config): string[] =>
  [modelPrices, backupPassphraseFile, backupTo]
    .filter((path) => path?.startsWith(`${dataDir}/`))
    .map((path) => path?.slice(dataDir.length + 1).split("/")[0] ?? "");

function isPrepared(config: Config): boolean {
  try {
    return readdirSync(config.dataDir).every((name) => isOfPreparing(name, config));
  } catch {
    return false;
  }
}

export const databaseOf = (config: Pick<Config, "dataDir">): string => join(config.dataDir, "roost.db");

/** Migrates only while holding the server's lock: never under a running server or beside another command. */
async function openCurrent(config: Config): Promise<Foundation> {
  for (const change of makePrivate(config.dataDir)) note(change);
  for (const deadline = Date.now() + MIGRATION_WAIT_MS; ; await Bun.sleep(LOOK_AGAIN_MS)) {
    const version = versionOf(databaseOf(config));
    // openFoundation itself refuses a newer or damaged database, with a good message.
    if (version === null || version >= SCHEMA_VERSION) return openFoundation(config);
    const lock = tryLock(config.dataDir);
    if (lock !== null) {
      try {
        return openFoundation(config);
      } finally {
        lock.release();
      }
    }
    if (Date.now() > deadline) {
      throw new Failure(
        `the data in ${config.dataDir} is from an older Roost, whose server is running`,
        "restart the server with this binary, or use the server's binary here",
      );
    }
  }
}

function tryLock(dataDir: string): { release(): void } | null {
  try {
    return lockDataFolder(dataDir);
  } catch (error) {
    if (error instanceof Error && (error.cause as { code?: unknown } | undefined)?.code === "SQLITE_BUSY") return null;
    throw error;
  }
}

/** The schema's version; 0 if there is no database, null if it cannot be read. Changes nothing on disk. */
export function versionOf(path: string): number | null {
  if (!existsSync(path)) return 0;
  try {
    const sqlite = new Database(path, { readonly: true });
    try {
      waitForOthers(sqlite);
      return schemaVersion(sqlite);
    } finally {
      sqlite.close();
    }
  } catch {
    return null;
  }
}
