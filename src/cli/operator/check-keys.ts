import { Database } from "bun:sqlite";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openFoundation } from "../../app/foundation.ts";
import type { Config } from "../../config.ts";
import { openMasterKey } from "../../secrets/master-key.ts";
import { createSecrets } from "../../secrets/secrets.ts";
import { SCHEMA_VERSION } from "../../storage/migrate.ts";
import { databaseOf, versionOf } from "./data-folder.ts";
import { type Finding, fail, pass } from "./finding.ts";

/** The key files exist and hold keys, which are not shown, and open the secrets. */
export function checkKeys({ dataDir }: Pick<Config, "dataDir">): Finding {
  if (!existsSync(databaseOf({ dataDir }))) return pass("none yet: the first start creates them");
  const broken = KEY_FILES.map(([name, holdsKey]) => [join(dataDir, name), holdsKey] as const)
    .filter(([path, holdsKey]) => !isGood(path, holdsKey))
    .map(([path]) => path);
  // checkWallet decides whether a missing wallet is a problem.
  const missing = KEY_FILES.map(([name]) => name).filter(
    (name) => name !== "wallet.json" && !existsSync(join(dataDir, name)),
  );
  if (broken.length > 0) {
    return fail(
      `no key can be read in ${broken.join(", ")}`,
      `restore ${broken.length === 1 ? "it" : "them"} from a backup that has the keys`,
    );
  }
  if (missing.length > 0 && versionOf(databaseOf({ dataDir })) === null) {
    return pass(`unknown: whether ${missing.join(", ")} must be there, the database would say, which cannot be read`);
  }
  if (missing.includes("host-keys.json") && hasRows(databaseOf({ dataDir }), "accounts")) {
    return fail(
      "host-keys.json is missing: nobody stays signed in, and the audit log cannot be verified",
      "restore it from a backup that has the keys, or let the next start create another",
    );
  }
  if (missing.includes("master.key") && hasRows(databaseOf({ dataDir }), "secrets")) {
    return fail("master.key is missing: no secret can be read", "restore it from a backup that has the keys");
  }
  const locked = missing.includes("master.key") ? 0 : countLocked(dataDir);
  if (locked > 0) {
    return fail(
      `${locked === 1 ? "1 secret was" : `${locked} secrets were`} stored with another master.key, and cannot be opened`,
      "stop the server and put the earlier master.key back, from a copy or a backup that has the keys; or have them stored " +
        "again: roost secret set INSTANCE NAME",
    );
  }
  return pass(missing.length === 0 ? "complete" : `the next start creates ${missing.join(", ")}`);
}

/** 0 if the database cannot be opened, or has to be migrated first: `checkDatabase` says so. */
function countLocked(dataDir: string): number {
  if (versionOf(databaseOf({ dataDir })) !== SCHEMA_VERSION) return 0;
  const { store, clock, audit } = openFoundation({ dataDir });
  try {
    const masterKey = openMasterKey(dataDir);
    return createSecrets({ store, clock, audit, masterKey, accountOf: (instanceId) => instanceId }).countLocked();
  } finally {
    store.close();
  }
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

function hasRows(path: string, table: "accounts" | "secrets"): boolean {
  const sqlite = new Database(path, { readonly: true });
  try {
    return sqlite.query(`SELECT 1 FROM ${table} LIMIT 1`).get() !== null;
  } finally {
    sqlite.close();
  }
}
