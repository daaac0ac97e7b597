import { chmodSync, mkdirSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { inWords } from "../lib/system-error.ts";

/** What holds secrets, keys or everybody's data: for its owner alone. */
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

/** The operator writes it, and may let the server read it through its group. */
const OPERATORS_OWN = "roost.toml";
const ROOT = 0;

/**
 * Makes the data folder where there is none, and takes from everybody else what they may do in it (operations.md: mode
 * 0700) and with the files of secrets (0600). Gives a line for each thing that it had to change. Throws, with the mend,
 * for what belongs to another user or stays open: whoever can write there is the host.
 */
export function closeToOthers(dataDir: string, uid: number = whoWeAre()): string[] {
  const folder = makeFolder(dataDir);
  if (!isOurs(folder, uid)) {
    throw new Error(
      `the data folder ${dataDir} belongs to another user, who can read and change all in it; ` +
        "run as that user, chown it to this one, or give another with --data",
    );
  }
  const told = tighten(dataDir, folder, 0o700);
  for (const name of PRIVATE_FILES) {
    const path = join(dataDir, name);
    const file = statSync(path, { throwIfNoEntry: false });
    if (!file || (name === OPERATORS_OWN && !isOurs(file, uid))) continue;
    told.push(...tighten(path, file, 0o600));
  }
  return told;
}

function makeFolder(dataDir: string): Stats {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    return statSync(dataDir);
  } catch (error) {
    throw inWords(`${dataDir} cannot be the data folder`, error, "give another with --data");
  }
}

const whoWeAre = (): number => process.getuid?.() ?? ROOT;

/** Root works in the folder of the user that the server runs as. */
export const isOurs = ({ uid }: Stats, user: number = whoWeAre()): boolean => uid === user || user === ROOT;

/** Whether somebody else may do anything with it. */
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
  // The last process that closes the database removes its log.
  if (!after) return [];
  // Some file systems take a mode and keep their own.
  if (isOpen(after)) {
    throw new Error(
      `${path} is open to other users (mode ${modeOf(before)}) and cannot be closed to them; ` +
        `chmod go-rwx '${path}', on a file system that knows modes`,
      { cause },
    );
  }
  return [`${path} was open to other users (mode ${modeOf(before)}); it is theirs no more`];
}
