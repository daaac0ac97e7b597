import { Database } from "bun:sqlite";
import { accessSync, constants, existsSync, readFileSync, type Stats, statfsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { openFoundation } from "../../app/foundation.ts";
import type { Config } from "../../config.ts";
import { findImbalance } from "../../ledger/imbalance.ts";
import { describeSystemError } from "../../lib/system-error.ts";
import { isDamage, openError } from "../../storage/connection.ts";
import { SCHEMA_VERSION } from "../../storage/migrate.ts";
import { isOpen, isOurs, modeOf, PRIVATE_FILES } from "../../storage/private-folder.ts";
import { examineAudit, tellVerified } from "./check-audit.ts";
import { databaseOf, versionOf } from "./data-folder.ts";
import { type Finding, ill, well } from "./finding.ts";

type Folder = Pick<Config, "dataDir">;

const RESTORE = "stop the server and put back the latest backup of the data folder";

/** The file is sound, of this binary's schema, its audit log unbroken and its books balanced. */
export function checkDatabase(config: Folder): Finding {
  const path = databaseOf(config);
  if (!existsSync(path)) return well(`there is none in ${config.dataDir} yet: the first start makes it`);
  const damage = damageOf(path);
  if (damage !== null) return ill(`${path} is damaged: ${damage}`, RESTORE);
  const version = versionOf(path) ?? 0;
  if (version > SCHEMA_VERSION) {
    return ill(`its schema is ${version}, this binary knows ${SCHEMA_VERSION}`, "use the newer Roost that wrote it");
  }
  if (version < SCHEMA_VERSION) return well(`schema ${version}: the next start migrates it to ${SCHEMA_VERSION}`);
  const { store } = openFoundation(config);
  try {
    const verdict = examineAudit(store, config.dataDir);
    if (verdict.finding !== null) return ill(`the audit log was changed: ${verdict.finding}`, RESTORE);
    const wrong = findImbalance(store);
    if (wrong !== null) return ill(wrong, RESTORE);
    return well(`sound, schema ${version}, audit log unbroken (${tellVerified(verdict)}), books balanced`);
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

const LEAST_FREE_BYTES = 256 * 1024 * 1024;

const OWN_FOLDER = "run as the user who owns it, or chown it";
const ANOTHER = "give another folder with --data";

/** There is room, the folder can be written, and nobody else reads what is in it. */
export function checkDisk({ dataDir }: Folder): Finding {
  const folder = existsSync(dataDir) ? statSync(dataDir) : null;
  if (!folder) return canBeMade(dataDir);
  if (!folder.isDirectory()) return ill(`${dataDir} is a file`, ANOTHER);
  if (!isOurs(folder)) {
    return ill(`${dataDir} belongs to another user, who can read and change all in it`, OWN_FOLDER);
  }
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return ill(`${dataDir} cannot be written by this user`, OWN_FOLDER);
  }
  const { bavail, bsize } = statfsSync(dataDir);
  const free = `${Math.floor((bavail * bsize) / (1024 * 1024))} MiB free`;
  if (bavail * bsize < LEAST_FREE_BYTES) return ill(`${free} in ${dataDir}`, "make room: 256 MiB or more");
  const wrong = [openToOthers(dataDir, folder), ...PRIVATE_FILES.map((name) => wrongFile(join(dataDir, name), folder))];
  return wrong.find((finding) => finding !== null) ?? well(`${free}, writable, private`);
}

function canBeMade(dataDir: string): Finding {
  let above = dirname(dataDir);
  while (!existsSync(above)) above = dirname(above);
  try {
    if (!statSync(above).isDirectory()) return ill(`${dataDir} cannot be made: ${above} is a file`, ANOTHER);
    accessSync(above, constants.W_OK | constants.X_OK);
    return well(`${dataDir} is not there yet: the first start makes it`);
  } catch (error) {
    throw describeSystemError(`${dataDir} cannot be made in ${above}`, error, ANOTHER);
  }
}

const openToOthers = (path: string, file: Stats): Finding | null =>
  isOpen(file) ? ill(`${path} is open to other users (mode ${modeOf(file)})`, `chmod go-rwx '${path}'`) : null;

function wrongFile(path: string, folder: Stats): Finding | null {
  const file = statSync(path, { throwIfNoEntry: false });
  if (!file) return null;
  if (file.uid === folder.uid) return openToOthers(path, file);
  return ill(`${path} belongs to another user than its folder`, `chown ${folder.uid}:${folder.gid} '${path}'`);
}

/** The files of keys are there and hold what they should; values are not shown. */
export function checkKeys({ dataDir }: Folder): Finding {
  if (!existsSync(databaseOf({ dataDir }))) return well("none yet: the first start makes them");
  const broken = KEY_FILES.filter(([name, holdsKey]) => !isGood(join(dataDir, name), holdsKey)).map(([name]) => name);
  // Whether a wallet may be missing is judged by the check of that name.
  const missing = KEY_FILES.map(([name]) => name).filter(
    (name) => name !== "wallet.json" && !existsSync(join(dataDir, name)),
  );
  if (broken.length > 0) {
    return ill(`${broken.join(", ")} cannot be read or hold no key`, "put them back from a backup that has the keys");
  }
  if (missing.includes("master.key") && hasSecrets(databaseOf({ dataDir }))) {
    return ill("master.key is gone: no secret can be read", "put it back from a backup that has the keys");
  }
  return well(missing.length === 0 ? "all there" : `the next start makes ${missing.join(", ")}`);
}

const KEY_FILES: [name: string, holdsKey: (content: Buffer) => boolean][] = [
  ["host-keys.json", (content) => "tokenKeys" in JSON.parse(content.toString())],
  ["master.key", (content) => content.byteLength === 32],
  ["wallet.json", (content) => /^0x[0-9a-fA-F]{40}$/.test(JSON.parse(content.toString()).address)],
];

function isGood(path: string, holdsKey: (content: Buffer) => boolean): boolean {
  if (!existsSync(path)) return true;
  try {
    return holdsKey(readFileSync(path));
  } catch {
    return false;
  }
}

function hasSecrets(path: string): boolean {
  const sqlite = new Database(path, { readonly: true });
  try {
    return sqlite.query("SELECT 1 FROM secrets LIMIT 1").get() !== null;
  } finally {
    sqlite.close();
  }
}
