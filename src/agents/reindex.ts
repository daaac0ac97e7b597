import type { Store } from "../storage/store.ts";
import { MAX_NAME_PARTS } from "../workspace/file-name.ts";
import type { FileStat, Jail } from "../workspace/jail.ts";
import type { FolderEntry } from "../workspace/jail-entries.ts";
import { MAX_WORKSPACE_FILES } from "../workspace/workspace.ts";
import type { WorkspaceFiles } from "./workspace-files.ts";

export interface ReindexParts {
  index: WorkspaceFiles;
  /**
   * The agent's workspace at this moment, since a slug may change. Null if the agent is deleted, or while a change of
   * its instance is in the index but not on disk yet, which would look like an operator's deletion.
   */
  jailOf(agentId: string): Jail | null;
  store: Pick<Store, "transaction" | "commitSoon">;
}

/** Files looked at in one slice. */
const BATCH = 100;
/** A workspace of at most so many files is compared with the disk within the request. */
export const SMALL_WORKSPACE = 250;

const pathOf = (parts: readonly string[], part: string): string => [...parts, part].join("/");
const indexed = (name: string, { size, mtimeMs }: FileStat) => ({ name, size, updatedAt: Math.floor(mtimeMs) });

/**
 * Updates the index, in slices, with what an operator changed on disk by hand. Each slice reads the disk and changes
 * the index in one turn, and so cannot undo a request's change. Beyond 10,000 files an operator's new ones are ignored.
 * Returns false if it ended early.
 */
export async function* reindex({ index, jailOf, store }: ReindexParts, agentId: string): AsyncGenerator<void, boolean> {
  /** Runs one slice; false if there is no workspace to read. */
  const slice = <T>(work: (jail: Jail) => T): Promise<T | false> =>
    store.commitSoon(() => {
      const jail = jailOf(agentId);
      return jail !== null && work(jail);
    }, "process");

  for (let after: string | null = ""; after !== null; ) {
    const from: string = after;
    const next: string | null | false = await slice((jail) => checkKnown(index, jail, agentId, from));
    if (next === false) return false;
    after = next;
    yield;
  }
  const folders: string[][] = [[]];
  for (let parts = folders.pop(); parts !== undefined; parts = folders.pop()) {
    const path = parts;
    const jail = jailOf(agentId);
    if (jail === null) return false;
    // In index order: neighbours share pages, so that a slice writes a few of them, not a few hundred.
    const entries = (await jail.entriesSoon(path)).sort((a, b) => (a.part < b.part ? -1 : 1));
    for (let at = 0; at < entries.length; at += BATCH) {
      const some = entries.slice(at, at + BATCH);
      if ((await slice((jail) => addUnknown(index, jail, agentId, path, some))) === false) return false;
      yield;
    }
    if (path.length + 1 < MAX_NAME_PARTS) folders.push(...foldersAmong(path, entries));
  }
  return true;
}

/** Compares the indexed files after `after` with the disk; returns the last name, or null when there are no more. */
function checkKnown(index: WorkspaceFiles, jail: Jail, agentId: string, after: string): string | null {
  const rows = index.page(agentId, after, BATCH);
  const byFolder = Map.groupBy(rows, ({ name }) => name.slice(0, Math.max(0, name.lastIndexOf("/"))));
  for (const [folder, group] of byFolder) {
    const parts = folder === "" ? [] : folder.split("/");
    const stats = jail.statAll(
      parts,
      group.map(({ name }) => name.slice(folder === "" ? 0 : folder.length + 1)),
    );
    for (const [at, row] of group.entries()) {
      const stat = stats[at] ?? null;
      if (stat === null) index.drop(agentId, row.name);
      else if (stat.size !== row.size || Math.floor(stat.mtimeMs) !== row.updatedAt) {
        index.put(agentId, indexed(row.name, stat));
      }
    }
  }
  return rows.length < BATCH ? null : (rows.at(-1)?.name ?? null);
}

function addUnknown(
  index: WorkspaceFiles,
  jail: Jail,
  agentId: string,
  parts: readonly string[],
  entries: readonly FolderEntry[],
): void {
  const unknown = entries.flatMap(({ part, kind }) =>
    kind === "file" && index.find(agentId, pathOf(parts, part)) === undefined ? [part] : [],
  );
  const room = MAX_WORKSPACE_FILES - index.totals(agentId).files;
  const added = unknown.slice(0, Math.max(0, room));
  for (const [at, stat] of jail.statAll(parts, added).entries()) {
    if (stat !== null) index.put(agentId, indexed(pathOf(parts, added[at] ?? ""), stat));
  }
}

const foldersAmong = (parts: readonly string[], entries: readonly FolderEntry[]): string[][] =>
  entries.flatMap(({ part, kind }) => (kind === "folder" ? [[...parts, part]] : []));

/**
 * Does the same for a small workspace at once, so that the request sees an operator's changes. Returns false, having
 * done nothing, if the workspace is too large.
 */
export function reindexSmall({ index, jailOf, store }: ReindexParts, agentId: string): boolean {
  const jail = jailOf(agentId);
  const rows = index.page(agentId, "", SMALL_WORKSPACE + 1);
  const found = jail && rows.length <= SMALL_WORKSPACE ? readSmall(jail) : null;
  if (found === null) return false;
  const gone = rows.filter(({ name }) => !found.has(name));
  const known = new Map(rows.map((row) => [row.name, row]));
  const changed = [...found].flatMap(([name, stat]) => {
    const row = known.get(name);
    return row?.size === stat.size && row.updatedAt === Math.floor(stat.mtimeMs) ? [] : [indexed(name, stat)];
  });
  if (gone.length + changed.length === 0) return true;
  store.transaction(() => {
    for (const { name } of gone) index.drop(agentId, name);
    for (const file of changed) index.put(agentId, file);
  });
  return true;
}

/** Every file of a tree; null if it has too many entries. */
function readSmall(jail: Jail): Map<string, FileStat> | null {
  const found = new Map<string, FileStat>();
  const folders: string[][] = [[]];
  let left = 2 * SMALL_WORKSPACE;
  for (let parts = folders.pop(); parts !== undefined; parts = folders.pop()) {
    const path = parts;
    const entries = jail.entries(path);
    // Folders count too: a tree of many empty ones is not small.
    left -= entries.length + 1;
    if (left < 0) return null;
    const files = entries.flatMap(({ part, kind }) => (kind === "file" ? [part] : []));
    for (const [at, stat] of jail.statAll(path, files).entries()) {
      if (stat !== null) found.set(pathOf(path, files[at] ?? ""), stat);
    }
    if (path.length + 1 < MAX_NAME_PARTS) folders.push(...foldersAmong(path, entries));
  }
  return found;
}
