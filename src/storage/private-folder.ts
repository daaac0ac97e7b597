import { chmodSync, mkdirSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { danglingLink } from "../lib/dangling-link.ts";
import { describeSystemError } from "../lib/system-error.ts";

/** Files with secrets, keys or tenants' data: readable by their owner only. */
export const PRIVATE_FILES = [
  "roost.db",
  "roost.db-wal",
  "roost.db-shm",
  "host-keys.json",
  "audit-head.json",
  "master.key",
  "wallet.json",
  "roost.toml",
] as const;

/** Root may own this file, and let the server read it through its mode: nobody else gets into the folder. */
export const CONFIG_FILE = "roost.toml";
export const ROOT = 0;

/**
 * Creates the data folder if it is missing, and removes other users' access to it (mode 0700;
 * docs/contract/operations.md, Data folder) and to the private files in it (0600). Returns a line for each change.
 * Throws, saying how to fix it, if the folder belongs to another user or stays accessible to others: whoever can write
 * there controls the host.
 */
export function makePrivate(dataDir: string, uid: number = whoWeAre()): string[] {
  const folder = makeFolder(dataDir);
  if (!isOurs(folder, uid)) {
    throw new Error(
      `the data folder ${dataDir} belongs to another user (${folder.uid}), who can read and change everything in it; ` +
        `run as that user, run chown -R ${uid} '${dataDir}', or choose another with --data`,
    );
  }
  const changes = tighten(dataDir, folder, 0o700);
  for (const name of PRIVATE_FILES) {
    const path = join(dataDir, name);
    const file = statSync(path, { throwIfNoEntry: false });
    if (!file || (name === CONFIG_FILE && file.uid !== folder.uid)) continue;
    changes.push(...tighten(path, file, 0o600));
  }
  return changes;
}

function makeFolder(dataDir: string): Stats {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    return statSync(dataDir);
  } catch (error) {
    const [what, other] = [`${dataDir} cannot be the data folder`, "choose another with --data"];
    const link = danglingLink(dataDir);
    if (link !== null) throw new Error(`${what}: ${link}; mount its disk, or ${other}`, { cause: error });
    throw describeSystemError(what, error, other);
  }
}

const whoWeAre = (): number => process.getuid?.() ?? ROOT;

/** Root may work in the folder of the user that the server runs as. */
export const isOurs = ({ uid }: Stats, user: number = whoWeAre()): boolean => uid === user || user === ROOT;

/** Whether other users have any access. */
export const isOpen = ({ mode }: Stats): boolean => (mode & 0o077) !== 0;

export const modeOf = ({ mode }: Stats): string => (mode & 0o777).toString(8).padStart(4, "0");

function tighten(path: string, before: Stats, mode: number): string[] {
  if (!isOpen(before)) return [];
  let cause: unknown;
  try {
    chmodSync(path, mode);
  } catch (error) {
    cause = error;
  }
  const after = statSync(path, { throwIfNoEntry: false });
  // The last process to close the database removes its WAL.
  if (!after) return [];
  // Some file systems accept chmod and ignore it.
  if (isOpen(after)) {
    throw new Error(
      `${path} is accessible to other users (mode ${modeOf(before)}), and that cannot be changed; ` +
        `run chmod go-rwx '${path}', on a file system that supports modes`,
      { cause },
    );
  }
  return [`${path} was accessible to other users (mode ${modeOf(before)}); it is private now`];
}
