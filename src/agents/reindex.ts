import { MAX_NAME_PARTS } from "./file-name.ts";
import type { FileStat, Jail } from "./jail.ts";
import type { FolderEntry } from "./jail-entries.ts";
import { MAX_WORKSPACE_FILES } from "./workspace.ts";
import type { FileIndex } from "./workspace-files.ts";

export interface ReindexParts {
  index: FileIndex;
  /** The agent's workspace as it is in this turn: a slug may change. Null where the agent is gone. */
  jailOf(agentId: string): Jail | null;
  transaction<T>(work: () => T): T;
}

/** Files looked at in one slice. */
const AT_ONCE = 250;
/** A workspace of at most so many files is compared with the disk at a request's own expense. */
export const SMALL_WORKSPACE = 250;

const pathOf = (parts: readonly string[], part: string): string => [...parts, part].join("/");
const indexed = (name: string, { size, mtimeMs }: FileStat) => ({ name, size, updatedAt: Math.floor(mtimeMs) });

/**
 * Slices that make the index tell what an operator's hands have done on the disk. Each looks at the disk and changes the
 * index in one turn, and so cannot undo what a request has done between two of them. Beyond 10,000 files an operator's
 * new ones are left out. Ends early where the agent is gone.
 */
export async function* reindex({ index, jailOf, transaction }: ReindexParts, agentId: string): AsyncGenerator<void> {
  for (let after: string | null = ""; after !== null; ) {
    const from: string = after;
    const jail = jailOf(agentId);
    if (jail === null) return;
    after = transaction(() => checkKnown(index, jail, agentId, from));
    yield;
  }
  for (const folders: string[][] = [[]]; ; ) {
    const parts = folders.pop();
    const reading = jailOf(agentId);
    if (parts === undefined || reading === null) return;
    const entries = await reading.entriesSoon(parts);
    for (let at = 0; at < entries.length; at += AT_ONCE) {
      const jail = jailOf(agentId);
      if (jail === null) return;
      const some = entries.slice(at, at + AT_ONCE);
      transaction(() => addUnknown(index, jail, agentId, parts, some));
      yield;
    }
    if (parts.length + 1 < MAX_NAME_PARTS) folders.push(...foldersAmong(parts, entries));
  }
}

/** Compares the indexed files behind `after` with the disk; gives the last name, null when there are no more. */
function checkKnown(index: FileIndex, jail: Jail, agentId: string, after: string): string | null {
  const rows = index.page(agentId, after, AT_ONCE);
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
  return rows.length < AT_ONCE ? null : (rows.at(-1)?.name ?? null);
}

function addUnknown(
  index: FileIndex,
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
 * The same for a small workspace, at once: a request that shows it sees an operator's changes. False where the workspace
 * holds too much for that, and nothing was done.
 */
export function reindexSmall({ index, jailOf, transaction }: ReindexParts, agentId: string): boolean {
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
  transaction(() => {
    for (const { name } of gone) index.drop(agentId, name);
    for (const file of changed) index.put(agentId, file);
  });
  return true;
}

/** Every file of a tree; null where it has too many entries. */
function readSmall(jail: Jail): Map<string, FileStat> | null {
  const found = new Map<string, FileStat>();
  const folders: string[][] = [[]];
  let left = 2 * SMALL_WORKSPACE;
  for (let parts = folders.pop(); parts !== undefined; parts = folders.pop()) {
    const path = parts;
    const entries = jail.entries(path);
    // A folder costs too: a tree of empty ones is no small one.
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
