/**
 * Changes of a workspace that stand or fall with a database transaction: staged before its commit, applied after it.
 * A crash in between leaves either all or nothing, once `recoverChanges` has run.
 *
 *   stageChange → commit, with a row that names the change → applyChange → delete the row
 */
import fs from "node:fs";
import { join } from "node:path";
import { openJail, writeNewFile } from "./jail.ts";
import { hasCode } from "./jail-portable.ts";
import { type CheckedChange, removeWorkspace, stagingFolder, syncFolder, TRASH, workspaceFolder } from "./workspace.ts";

/** `create` replaces what a lost removal may have left under the slug. `rename` may carry file changes too. */
export type WorkspaceTarget =
  | { kind: "create" | "edit" | "remove"; slug: string }
  | { kind: "rename"; slug: string; from: string };

interface Manifest {
  target: WorkspaceTarget;
  deletes: string[];
  /** The content waits in the file of that number. */
  sets: { name: string; content: string }[];
}

/** A file as it will be when its change is applied. */
export interface StagedFile {
  name: string;
  size: number;
  mtimeMs: number;
}

const MANIFEST = "manifest.json";
const CHANGE_ID = /^(?!trash-)[A-Za-z0-9_-]{1,64}$/;

/**
 * Puts the changes on disk, without touching the workspace, and gives the files that they set. `changeId` is new, and
 * ids sort in the order of their commits. A failure leaves nothing behind.
 */
export function stageChange(
  instanceFolder: string,
  changeId: string,
  target: WorkspaceTarget,
  changes: readonly CheckedChange[],
): StagedFile[] {
  const staged = changeFolder(instanceFolder, changeId);
  fs.mkdirSync(staged, { mode: 0o700 });
  try {
    const manifest: Manifest = { target, deletes: [], sets: [] };
    const files: StagedFile[] = [];
    for (const [index, { name, bytes }] of changes.entries()) {
      if (bytes === null) manifest.deletes.push(name);
      else {
        const content = join(staged, String(index));
        writeNewFile(content, bytes);
        files.push({ name, size: bytes.byteLength, mtimeMs: fs.lstatSync(content).mtimeMs });
        manifest.sets.push({ name, content: String(index) });
      }
    }
    writeNewFile(join(staged, MANIFEST), Buffer.from(JSON.stringify(manifest)));
    syncFolder(staged);
    syncFolder(stagingFolder(instanceFolder));
    return files;
  } catch (error) {
    fs.rmSync(staged, { recursive: true, force: true });
    throw error;
  }
}

/** Forgets a staged change whose transaction was rolled back. */
export function discardChange(instanceFolder: string, changeId: string): void {
  fs.rmSync(changeFolder(instanceFolder, changeId), { recursive: true, force: true });
}

/** Carries out a staged change whose transaction is committed; on disk when it returns. Again, it changes nothing. */
export function applyChange(instanceFolder: string, changeId: string): void {
  const staged = changeFolder(instanceFolder, changeId);
  const manifest = readManifest(staged);
  if (manifest !== null) {
    applyManifest(instanceFolder, staged, manifest);
    // Without its manifest a committed change counts as done: so this goes first, and alone.
    fs.unlinkSync(join(staged, MANIFEST));
  }
  fs.rmSync(staged, { recursive: true, force: true });
}

function applyManifest(instanceFolder: string, staged: string, { target, deletes, sets }: Manifest): void {
  if (target.kind === "remove") {
    removeWorkspace(instanceFolder, target.slug);
    return;
  }
  const folder = workspaceFolder(instanceFolder, target.slug);
  const moves = sets.map(({ name, content }) => ({ source: join(staged, content), name }));
  const jail = openJail(folder);
  // Once a file has moved in, all that comes before is done; doing it again might undo that file.
  if (moves.every(({ source }) => fs.existsSync(source))) {
    prepareFolder(instanceFolder, target);
    for (const name of deletes) jail.remove(name);
  }
  jail.moveIn(moves);
}

function prepareFolder(instanceFolder: string, target: WorkspaceTarget): void {
  const folder = workspaceFolder(instanceFolder, target.slug);
  if (target.kind === "create") removeWorkspace(instanceFolder, target.slug);
  if (target.kind === "rename" && target.from !== target.slug) {
    const from = workspaceFolder(instanceFolder, target.from);
    if (fs.existsSync(from)) {
      removeWorkspace(instanceFolder, target.slug);
      fs.renameSync(from, folder);
    }
  }
  const isMade = fs.mkdirSync(folder, { recursive: true, mode: 0o700 }) !== undefined;
  if (isMade || target.kind !== "edit") syncFolder(join(instanceFolder, "agents"));
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
 * After a crash: finishes the changes whose transaction was committed, in the order of their ids, and discards the
 * others. Gives the ids of the finished ones, whose rows may go. Removed workspaces are left to be cleared away.
 */
export function recoverChanges(instanceFolder: string, isCommitted: (changeId: string) => boolean): string[] {
  const finished: string[] = [];
  for (const entry of readFolder(stagingFolder(instanceFolder)).sort()) {
    if (entry.startsWith(TRASH)) continue;
    if (CHANGE_ID.test(entry) && isCommitted(entry)) {
      applyChange(instanceFolder, entry);
      finished.push(entry);
    } else fs.rmSync(join(stagingFolder(instanceFolder), entry), { recursive: true, force: true });
  }
  return finished;
}

function readFolder(folder: string): string[] {
  try {
    return fs.readdirSync(folder);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}

function changeFolder(instanceFolder: string, changeId: string): string {
  if (!CHANGE_ID.test(changeId)) throw new TypeError("not a change id");
  return join(stagingFolder(instanceFolder), changeId);
}
