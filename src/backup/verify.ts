import type { KeyObject } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { readAuditKey } from "../accounts/host-keys.ts";
import { findImbalance } from "../ledger/imbalance.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import { readAuditHead } from "../storage/audit-checkpoints.ts";
import { findBreak, verifyAudit } from "../storage/audit-verify.ts";
import { openStore, type Store } from "../storage/store.ts";
import { ArchiveError, type Source } from "./archive.ts";
import { holdFolder, removeAbandonedChecks } from "./left-behind.ts";
import { type Restored, type RestoreOptions, unpack } from "./restore.ts";
import { makeWorkFolder } from "./snapshot.ts";
import { countEmptied } from "./workspaces.ts";

/**
 * Restores a backup into a temporary folder, opens its database as a start of this binary would, migrating it, and checks
 * the audit log, the books, and that agents have their files. Throws `ArchiveError` if any of that fails, or the signal's
 * reason. The folder is beside the backups of `dataDir`, or, if there is no such data folder, among the system's temporary
 * files.
 */
export async function verifyBackup(
  dataDir: string,
  options: RestoreOptions,
  signal: AbortSignal = new AbortController().signal,
): Promise<Restored> {
  const folder = await (existsSync(dataDir)
    ? makeWorkFolder(dataDir, "verify")
    : mkdtemp(join(tmpdir(), "roost-verify-")));
  const hold = holdFolder(folder);
  try {
    await removeAbandonedChecks(dirname(folder));
    const archive = endedBy(signal, options.archive);
    const restored = await unpack(folder, { ...options, archive }, { durably: false });
    // What has been sent while the database was checked arrives now.
    await setImmediate();
    signal.throwIfAborted();
    checkRecords(folder, dataDir);
    checkWorkspaces(folder, restored);
    return restored;
  } finally {
    await rm(folder, { recursive: true, force: true });
    hold.release();
  }
}

/** The same source, until the signal aborts: then reading it throws the signal's reason. */
const endedBy = (signal: AbortSignal, source: Source): Source => ({
  slice: (from, to) => ({ arrayBuffer: () => untilAborted(source.slice(from, to).arrayBuffer(), signal) }),
  stream: () => source.stream().pipeThrough(new TransformStream(), { signal }),
});

/** Signatures are checked with the key that the backup holds, or else with that of the data folder, if it has one. */
function checkRecords(folder: string, dataDir: string): void {
  const key = readAuditKey(folder) ?? readAuditKey(dataDir);
  const store = openStore(folder);
  try {
    const finding = key === null ? breakOf(store) : signedBreakOf(store, folder, key);
    if (finding !== null) throw new ArchiveError(`its audit log was changed: ${finding}`);
    const wrong = findImbalance(store);
    if (wrong !== null) throw new ArchiveError(wrong);
  } finally {
    store.close();
  }
}

function checkWorkspaces(folder: string, { emptiedAgents = 0 }: Restored): void {
  const missing = countEmptied(folder) - emptiedAgents;
  if (missing > 0) throw new ArchiveError(`it has no files of ${missing} of the agents that have some in its database`);
}

function breakOf(store: Store): string | null {
  const row = findBreak(store);
  return row === null ? null : `row ${row} does not follow from the one before it`;
}

const signedBreakOf = (store: Store, folder: string, key: KeyObject): string | null =>
  verifyAudit({ store, nowMs: Date.now(), publicKey: () => key, head: readAuditHead(folder) }).finding;
