/**
 * Workspace changes that are atomic with a database transaction: staged before its commit, applied after it.
 * A crash in between leaves either all or nothing, once `recoverChanges` has run.
 *
 *   stageChange → commit, with a row that names the change → applyChange → finishChange → delete the row
 *
 * Waiting for the disk happens off the event loop, before and after the commit. Applying the change, in the turn of the
 * commit, only renames what is on disk already.
 */
import fs from "node:fs";
import { join } from "node:path";
import { forEachLimited } from "../lib/concurrency.ts";
import { makePrivateFolder, syncFolder, writePrivateFile } from "../lib/private-file.ts";
import { hasCode } from "../lib/system-error.ts";
import { syncFolderSoon, writeNewFileSoon } from "./disk.ts";
import { type Jail, openJail } from "./jail.ts";
import {
  type CheckedChange,
  createInstanceFolder,
  removeWorkspace,
  STAGING,
  TRASH,
  workspaceFolder,
} from "./workspace.ts";

/**
 * `create` replaces what an interrupted removal may have left under the slug. `rename` may change files too. `arrive` puts
 * a whole folder in place.
 */
export type WorkspaceTarget =
  | { kind: "create" | "edit" | "remove" | "arrive"; slug: string }
  | { kind: "rename"; slug: string; from: string };

interface Manifest {
  target: WorkspaceTarget;
  deletes: string[];
  /** The content is in the staged file of this number. */
  sets: { name: string; content: string }[];
}

/** A file as it will be when its change is applied. */
export interface StagedFile {
  name: string;
  size: number;
  mtimeMs: number;
}

/** Concurrent writes of one change, which share the disk with everybody's commits. */
const WRITE_CONCURRENCY = 4;
const MANIFEST = "manifest.json";
/** The folder of an `arrive`. */
const ARRIVING = "workspace";
const CHANGE_ID = /^(?!trash-)[A-Za-z0-9_-]{1,64}$/;

/**
 * Writes the changes to disk, without touching the workspace, and returns the files that they set. `changeId` must be
 * new, and ids must sort in commit order. A failure leaves nothing behind.
 */
export async function stageChange(
  instanceFolder: string,
  changeId: string,
  target: WorkspaceTarget,
  changes: readonly CheckedChange[],
): Promise<StagedFile[]> {
  const staged = changeFolder(instanceFolder, changeId);
  await fs.promises.mkdir(join(instanceFolder, STAGING), { recursive: true, mode: 0o700 });
  await fs.promises.mkdir(staged, { mode: 0o700 });
  try {
    const manifest: Manifest = { target, deletes: [], sets: [] };
    const contents: { name: string; bytes: Uint8Array; path: string }[] = [];
    for (const [index, { name, bytes }] of changes.entries()) {
      if (bytes === null) manifest.deletes.push(name);
      else {
        contents.push({ name, bytes, path: join(staged, String(index)) });
        manifest.sets.push({ name, content: String(index) });
      }
    }
    const bytes = Buffer.from(JSON.stringify(manifest));
    const times = new Map<string, number>();
    await forEachLimited(WRITE_CONCURRENCY, [...contents, { bytes, path: join(staged, MANIFEST) }], async (file) => {
      times.set(file.path, await writeNewFileSoon(file.path, file.bytes));
    });
    await Promise.all([staged, join(instanceFolder, STAGING)].map(syncFolderSoon));
    return contents.map(({ name, bytes, path }) => ({ name, size: bytes.byteLength, mtimeMs: times.get(path) ?? 0 }));
  } catch (error) {
    await discardChange(instanceFolder, changeId);
    throw error;
  }
}

/**
 * The same for a workspace whose folder is complete, and on disk, somewhere else in the data folder: it moves, however many
 * files it has. A failure may leave it where it was.
 */
export async function stageFolder(
  instanceFolder: string,
  changeId: string,
  slug: string,
  folder: string,
): Promise<void> {
  const staged = changeFolder(instanceFolder, changeId);
  await fs.promises.mkdir(staged, { recursive: true, mode: 0o700 });
  try {
    await fs.promises.rename(folder, join(staged, ARRIVING));
    const manifest: Manifest = { target: { kind: "arrive", slug }, deletes: [], sets: [] };
    await writeNewFileSoon(join(staged, MANIFEST), Buffer.from(JSON.stringify(manifest)));
    await Promise.all([staged, join(instanceFolder, STAGING)].map(syncFolderSoon));
  } catch (error) {
    await discardChange(instanceFolder, changeId);
    throw error;
  }
}

/** The same for a folder that only moves, in one turn: for commands without a server. */
export function stageMove(instanceFolder: string, changeId: string, target: WorkspaceTarget): void {
  const staged = changeFolder(instanceFolder, changeId);
  makePrivateFolder(staged);
  writePrivateFile(join(staged, MANIFEST), JSON.stringify({ target, deletes: [], sets: [] } satisfies Manifest));
  syncFolder(join(instanceFolder, STAGING));
}

/** Discards a staged change that was rolled back or never committed. */
export async function discardChange(instanceFolder: string, changeId: string): Promise<void> {
  await fs.promises.rm(changeFolder(instanceFolder, changeId), { recursive: true, force: true });
}

/** An applied change, before it is on disk. */
export type Applied = Pick<Jail, "sync" | "syncSoon">;

const NOTHING_APPLIED: Applied = { sync() {}, async syncSoon() {} };

/**
 * Applies a staged change after its commit, in one turn, so that nobody sees half of it. The staged files stay until
 * `finishChange`, so that it can be repeated from the start after a crash.
 */
export function applyChange(instanceFolder: string, changeId: string): Applied {
  const staged = changeFolder(instanceFolder, changeId);
  const manifest = readManifest(staged);
  return manifest === null ? NOTHING_APPLIED : applyManifest(instanceFolder, staged, manifest);
}

/**
 * Waits until an applied change is on disk, then removes its staged files. No later change of the workspace may be
 * applied before.
 */
export async function finishChange(instanceFolder: string, changeId: string, applied: Applied): Promise<void> {
  const staged = changeFolder(instanceFolder, changeId);
  await applied.syncSoon();
  // A change without its manifest counts as done, so the manifest is removed first.
  await fs.promises.rm(join(staged, MANIFEST), { force: true });
  await fs.promises.rm(staged, { recursive: true, force: true });
}

function applyManifest(instanceFolder: string, staged: string, { target, deletes, sets }: Manifest): Applied {
  const agents = join(instanceFolder, "agents");
  const folder = workspaceFolder(instanceFolder, target.slug);
  const jail = openJail(folder);
  const withAgents: Applied = {
    sync() {
      jail.sync();
      syncFolder(agents);
    },
    syncSoon: async () => void (await Promise.all([jail.syncSoon(), syncFolderSoon(agents)])),
  };
  if (target.kind === "remove") {
    removeWorkspace(instanceFolder, target.slug);
    return withAgents;
  }
  if (target.kind === "arrive") {
    const source = join(staged, ARRIVING);
    // Once it has moved, it is the workspace: a repetition leaves it alone.
    if (fs.existsSync(source)) {
      removeWorkspace(instanceFolder, target.slug);
      fs.renameSync(source, folder);
    }
    return withAgents;
  }
  const files = sets.map(({ name, content }) => ({ source: join(staged, content), name }));
  let isMade = false;
  // Without links, a file that has moved shows that all earlier steps are done; repeating them might undo it.
  if (files.every(({ source }) => fs.existsSync(source))) {
    isMade = prepareFolder(instanceFolder, target);
    for (const name of deletes) jail.remove(name);
  }
  jail.putIn(files);
  return isMade || target.kind !== "edit" ? withAgents : jail;
}

/** Whether it had to be created. */
function prepareFolder(instanceFolder: string, target: WorkspaceTarget): boolean {
  const folder = workspaceFolder(instanceFolder, target.slug);
  if (target.kind === "create") removeWorkspace(instanceFolder, target.slug);
  if (target.kind === "rename" && target.from !== target.slug) {
    const from = workspaceFolder(instanceFolder, target.from);
    if (fs.existsSync(from)) {
      removeWorkspace(instanceFolder, target.slug);
      fs.renameSync(from, folder);
    }
  }
  return fs.mkdirSync(folder, { recursive: true, mode: 0o700 }) !== undefined;
}

function readManifest(staged: string): Manifest | null {
  try {
    return JSON.parse(fs.readFileSync(join(staged, MANIFEST), "utf8")) as Manifest;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return null;
    throw error;
  }
}

/**
 * After a crash: finishes committed changes in the order of their ids, and discards the others. Returns the ids of the
 * finished ones, whose rows may be deleted. Removed workspaces stay in the staging folder, to be deleted later.
 */
export function recoverChanges(instanceFolder: string, isCommitted: (changeId: string) => boolean): string[] {
  const finished: string[] = [];
  createInstanceFolder(instanceFolder);
  for (const entry of fs.readdirSync(join(instanceFolder, STAGING)).sort()) {
    if (entry.startsWith(TRASH)) continue;
    const staged = join(instanceFolder, STAGING, entry);
    if (CHANGE_ID.test(entry) && isCommitted(entry)) {
      applyChange(instanceFolder, entry).sync();
      fs.rmSync(join(staged, MANIFEST), { force: true });
      finished.push(entry);
    }
    fs.rmSync(staged, { recursive: true, force: true });
  }
  return finished;
}

/** Where a workspace is that one of these changes has yet to rename to `slug`; null if none of them does. */
export function renamedFrom(instanceFolder: string, slug: string, changeIds: readonly string[]): string | null {
  for (const changeId of changeIds) {
    const target = readManifest(changeFolder(instanceFolder, changeId))?.target;
    if (target?.kind === "rename" && target.slug === slug) return workspaceFolder(instanceFolder, target.from);
  }
  return null;
}

function changeFolder(instanceFolder: string, changeId: string): string {
  if (!CHANGE_ID.test(changeId)) throw new TypeError("not a change id");
  return join(instanceFolder, STAGING, changeId);
}
