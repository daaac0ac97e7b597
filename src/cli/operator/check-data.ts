import { Database } from "bun:sqlite";
import { accessSync, constants, existsSync, type Stats, statfsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { openFoundation } from "../../app/foundation.ts";
import type { Config } from "../../config.ts";
import { findImbalance } from "../../ledger/imbalance.ts";
import { danglingLink } from "../../lib/dangling-link.ts";
import { describeSystemError, hasCode } from "../../lib/system-error.ts";
import { listModels, modelsFolder } from "../../models/store/store.ts";
import { emptiedError, isDamage, openError } from "../../storage/connection.ts";
import { SCHEMA_VERSION } from "../../storage/migrate.ts";
import { CONFIG_FILE, isOpen, isOurs, modeOf, PRIVATE_FILES, ROOT } from "../../storage/private-folder.ts";
import { checkAuditLog, describeVerdict, findingOf } from "./check-audit.ts";
import { databaseOf, dataHere, versionOf } from "./data-folder.ts";
import { type Finding, fail, pass } from "./finding.ts";

type Folder = Pick<Config, "dataDir">;

const RESTORE = "stop the server and restore the latest backup of the data folder";
const PUT_KEYS_BACK =
  "stop the server and put the earlier host-keys.json back, from a copy or a backup that has the keys. If this is the right " +
  "one, restore the latest backup of the data folder. If it is lost, what it has signed cannot be verified any more, and no " +
  "further row is signed";

/** The database is undamaged, of this binary's schema, with an intact audit log and balanced books. */
export function checkDatabase(config: Folder): Finding {
  const path = databaseOf(config);
  if (!existsSync(path)) {
    const here = dataHere();
    const what = here === null ? "the first start creates it" : `to check that in ./data, add --data ${here}`;
    return pass(`there is none in ${config.dataDir} yet: ${what}`);
  }
  const emptied = emptiedError(path);
  if (emptied !== null) throw emptied;
  const damage = damageOf(path);
  if (damage !== null) return fail(`${path} is damaged: ${damage}`, RESTORE);
  const version = versionOf(path) ?? 0;
  if (version > SCHEMA_VERSION) {
    return fail(`its schema is ${version}, this binary knows ${SCHEMA_VERSION}`, "use the newer Roost that wrote it");
  }
  if (version < SCHEMA_VERSION) return pass(`schema ${version}: the next start migrates it to ${SCHEMA_VERSION}`);
  const { store } = openFoundation(config);
  try {
    const verdict = checkAuditLog(store, config.dataDir);
    const finding = findingOf(verdict);
    if (finding !== null) return fail(finding, verdict.mayLackKey ? PUT_KEYS_BACK : RESTORE);
    const wrong = findImbalance(store);
    if (wrong !== null) return fail(wrong, RESTORE);
    return pass(`undamaged, schema ${version}, audit log intact (${describeVerdict(verdict)}), books balanced`);
  } finally {
    store.close();
  }
}

function damageOf(path: string): string | null {
  try {
    const sqlite = new Database(path, { readonly: true });
    try {
      const found = sqlite.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get()?.quick_check;
      return found === "ok" ? null : (found ?? "no answer");
    } finally {
      sqlite.close();
    }
  } catch (error) {
    if (isDamage(error)) return error.message;
    throw openError(path, error);
  }
}

const MIN_FREE_BYTES = 256 * 1024 * 1024;

const OWN_FOLDER = "run as the user who owns it, or chown it";
const OTHER_FOLDER = "give another folder with --data";
const MOUNT = `mount it for writing (the system's log says whether its disk has failed), or ${OTHER_FOLDER}`;

/** There is free space, the folder is writable, and nobody else can read what is in it. */
export function checkDisk({ dataDir }: Folder): Finding {
  const folder = existsSync(dataDir) ? statSync(dataDir) : null;
  if (!folder) return canBeMade(dataDir);
  if (!folder.isDirectory()) return fail(`${dataDir} is a file`, OTHER_FOLDER);
  if (!isOurs(folder)) {
    return fail(`${dataDir} belongs to another user, who can read and change everything in it`, OWN_FOLDER);
  }
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    if (hasCode(error, "EROFS")) return fail(`${dataDir} is on a file system that is read-only`, MOUNT);
    return fail(`${dataDir} cannot be written by this user`, OWN_FOLDER);
  }
  const { bavail, bsize } = statfsSync(dataDir);
  const free = `${Math.floor((bavail * bsize) / (1024 * 1024))} MiB free`;
  if (bavail * bsize < MIN_FREE_BYTES)
    return fail(`${free} in ${dataDir}`, "free some space: at least 256 MiB are needed");
  const wrong = [
    openToOthers(dataDir, folder),
    ...PRIVATE_FILES.map((name) => wrongFile(dataDir, name, folder)),
    ...foldersIn(dataDir).map((path) => wrongFolder(path, folder)),
  ];
  return wrong.find((finding) => finding !== null) ?? pass(`${free}, writable, private`);
}

function canBeMade(dataDir: string): Finding {
  const link = danglingLink(dataDir);
  if (link !== null) return fail(`${dataDir} cannot be created: ${link}`, `mount its disk, or ${OTHER_FOLDER}`);
  let above = dirname(dataDir);
  while (!existsSync(above)) above = dirname(above);
  try {
    if (!statSync(above).isDirectory()) return fail(`${dataDir} cannot be created: ${above} is a file`, OTHER_FOLDER);
    accessSync(above, constants.W_OK | constants.X_OK);
    return pass(`${dataDir} does not exist yet: the first start creates it`);
  } catch (error) {
    throw describeSystemError(`${dataDir} cannot be created in ${above}`, error, OTHER_FOLDER);
  }
}

const openToOthers = (path: string, file: Stats): Finding | null =>
  isOpen(file) ? fail(`${path} is open to other users (mode ${modeOf(file)})`, `chmod go-rwx '${path}'`) : null;

function wrongFile(dataDir: string, name: string, folder: Stats): Finding | null {
  const path = join(dataDir, name);
  const file = statSync(path, { throwIfNoEntry: false });
  if (!file) return null;
  if (file.uid === folder.uid) return openToOthers(path, file);
  if (name === CONFIG_FILE && file.uid === ROOT && (file.mode & 0o044) !== 0) return null;
  return fail(`${path} and its folder belong to different users`, `chown ${folder.uid}:${folder.gid} '${path}'`);
}

/** Those in which the server writes, and whose owner a command that root runs may have become. */
function foldersIn(dataDir: string): string[] {
  const models = modelsFolder(dataDir);
  return [join(dataDir, "backups"), models, ...listModels(dataDir).map(({ folder }) => folder)];
}

function wrongFolder(path: string, { uid, gid }: Stats): Finding | null {
  const owner = statSync(path, { throwIfNoEntry: false })?.uid;
  if (owner === undefined || owner === uid) return null;
  return fail(`${path} does not belong to the data folder's owner`, `chown -R ${uid}:${gid} '${path}'`);
}
