import { join } from "node:path";
import { and, eq, isNull, sql } from "drizzle-orm";
import { instances } from "../instances/schema.ts";
import { notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { isId } from "../lib/id.ts";
import type { Log } from "../lib/log.ts";
import { prepared } from "../storage/prepared.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import { clearFolder, clearTrash, namesIn } from "../workspace/clear-folder.ts";
import { NO_NAMES, parseFileName } from "../workspace/file-name.ts";
import { openJail } from "../workspace/jail.ts";
import type { FolderEntry } from "../workspace/jail-entries.ts";
import { createTexts } from "../workspace/texts.ts";
import {
  type CheckedChange,
  checkChanges,
  createInstanceFolder,
  type FileChange,
  readFile,
  refuseOverWorkspace,
  removeEmptyInstanceFolder,
  type WorkspaceFile,
  workspaceFolder,
} from "../workspace/workspace.ts";
import { checkPreconditions, type Preconditions } from "./preconditions.ts";
import { reindexSmall, SMALL_WORKSPACE } from "./reindex.ts";
import { createReindexer, type Reindexer } from "./reindexer.ts";
import { type Agent, agents } from "./schema.ts";
import { type ShownNames, type ShownTexts, showNames, showTexts } from "./shown-files.ts";
import { createWorkspaceChanges, type StagedChange, type WorkspaceChanges } from "./workspace-changes.ts";
import { createWorkspaceFiles, type IndexedFile } from "./workspace-files.ts";

/** Files in one request (docs/contract/api.md, Sizes). */
export const MAX_FILES_PER_REQUEST = 64;
/** Instance folders checked in one turn after a start. */
const STRAYS_PER_TURN = 500;
const UNKNOWN_INSTANCES =
  "the database does not know some instances whose workspaces are in the data folder: if it is older than they are, " +
  "stop the server and bring the newer one back; otherwise move their folders elsewhere";

/** Identifies a workspace and its folder. */
export type WorkspaceRef = Pick<Agent, "agentId" | "instanceId" | "slug">;

/** Agents' workspaces: their folders, their contents, and their changes. */
export interface Workspaces {
  /** Creates the folder; it is on disk before anything in it is. */
  createInstanceFolder(instanceId: string): void;
  /**
   * Checks changes to a workspace, or to a new one if `place` is null. Throws `invalid_request` for a bad name, a
   * clash, a file that is too large, or text that UTF-8 cannot encode.
   */
  check(place: WorkspaceRef | null, changes: readonly FileChange[], field?: string): CheckedChange[];
  /** Checks again changes that were valid earlier and may no longer be. */
  recheck(place: WorkspaceRef, changes: readonly CheckedChange[]): void;
  inTurn: WorkspaceChanges["inTurn"];
  tidy: WorkspaceChanges["tidy"];
  /**
   * Changes the workspace with the open transaction: the index now, the files after the commit; `recover` completes it
   * after a crash. `isTainted` says that what is written may be a stranger's. Throws `conflict` beyond the quota of a
   * workspace. Returns the files written.
   */
  change(place: WorkspaceRef, staged: StagedChange, isTainted?: boolean): IndexedFile[];
  /**
   * Adds files to the index of a workspace that is not in place yet. Call it in a transaction; `isTainted` says of which a
   * stranger may have written the text.
   */
  index(agentId: string, files: readonly IndexedFile[], isTainted: (name: string) => boolean): void;
  /** Of these names, those of files that a tainted run wrote. */
  taintedOf(place: WorkspaceRef, names: readonly string[]): string[];
  /** Name → text of the text files, as far as a record shows them, including files about to be written. */
  texts(place: WorkspaceRef, written?: readonly CheckedChange[]): ShownTexts;
  /** File names of each agent on a page. */
  names(page: readonly Agent[]): Map<string, ShownNames>;
  has(place: WorkspaceRef, name: string): boolean;
  /** Whether the file is on disk. Throws `invalid_request` for a bad name. */
  isThere(place: WorkspaceRef, name: string): boolean;
  /** By name, after `after`. */
  list(place: WorkspaceRef, after: string, limit: number): IndexedFile[];
  /** What is on disk in the folder at these parts, also what is no file of the workspace. */
  entriesSoon(place: WorkspaceRef, parts: readonly string[]): Promise<FolderEntry[]>;
  /** The first files in a folder, and in those in it, by name. */
  listWithin(place: WorkspaceRef, folder: string, limit: number): IndexedFile[];
  /** The named top-level files that exist and are text, in the order of the names. */
  some(place: WorkspaceRef, names: readonly string[]): { name: string; text: string }[];
  /** Throws `not_found`. */
  read(place: WorkspaceRef, name: string): WorkspaceFile;
  /** The change that writes one file; `created` if it is new. Throws as `check`, and `precondition_failed`. */
  checkWrite(
    place: WorkspaceRef,
    name: string,
    bytes: Uint8Array,
    condition: Preconditions,
  ): { created: boolean; changes: CheckedChange[] };
  /** The change that deletes one file. Throws `not_found`, `precondition_failed`. */
  checkDelete(place: WorkspaceRef, name: string, condition: Preconditions): CheckedChange[];
  /** Picks up an operator's changes on disk: at once in a small workspace, otherwise soon. */
  refresh(agent: Agent): void;
  reindexing: Reindexer;
  /** After a start, before anything else: finishes what was committed, removes what was not. */
  recover(): void;
  /** Resolves when no change is in progress. */
  settled(): Promise<void>;
  /** Refuses changes that have not begun. Resolves when none is in progress. */
  stop(): Promise<void>;
  /**
   * Removes folders of unknown instances, left by a crash between creating a folder and its row. One that holds anything
   * is left, and reported: the database may be older than the workspaces, and be replaced by a newer one.
   */
  removeStrays(isKnown: (instanceId: string) => boolean): Promise<void>;
  clearInstanceFolder(instanceId: string): AsyncIterator<void>;
  /** Removes the deleted workspaces of an instance from disk. */
  clearTrash(instanceId: string): AsyncIterator<void>;
}

export interface WorkspaceParts {
  store: Store;
  clock: Clock;
  log: Log;
  dataDir: string;
  removals: Pick<Removals, "add">;
}

export function createWorkspaces({ store, clock, log, dataDir, removals }: WorkspaceParts): Workspaces {
  const { db } = store;
  const instancesFolder = join(dataDir, "instances");
  const instanceFolder = (instanceId: string) => join(instancesFolder, instanceId);
  const folderOf = ({ instanceId, slug }: Pick<WorkspaceRef, "instanceId" | "slug">) =>
    workspaceFolder(instanceFolder(instanceId), slug);
  const index = createWorkspaceFiles(db);
  const promptTexts = createTexts();
  const changing = createWorkspaceChanges({ store, log, removals, folderOf: instanceFolder });
  const placeOf = prepared(db, () =>
    db
      .select({ instanceId: agents.instanceId, slug: agents.slug })
      .from(agents)
      .innerJoin(instances, eq(instances.instanceId, agents.instanceId))
      .where(
        and(eq(agents.agentId, sql.placeholder("agentId")), isNull(agents.removedAt), isNull(instances.removedAt)),
      ),
  );

  /** Looked up each time: a comparison takes many turns, and the workspace may be moved or deleted meanwhile. */
  function jailOf(agentId: string) {
    const place = placeOf.get({ agentId });
    return place !== undefined && changing.isInPlace(place.instanceId) ? openJail(folderOf(place)) : null;
  }
  const reindexParts = { index, jailOf, store };
  const reindexing = createReindexer({ ...reindexParts, clock, log });

  function indexChanges(
    agentId: string,
    files: readonly IndexedFile[],
    changes: readonly CheckedChange[],
    isTainted: boolean,
  ): void {
    const before = index.totals(agentId);
    for (const { name, bytes } of changes) if (bytes === null) index.drop(agentId, name);
    for (const file of files) index.put(agentId, file, isTainted);
    refuseOverWorkspace(before, index.totals(agentId));
  }

  function check(place: WorkspaceRef | null, changes: readonly FileChange[], field?: string): CheckedChange[] {
    const folder = place && folderOf(place);
    const standing = (without: ReadonlySet<string>) => (place ? index.standing(place.agentId, without) : NO_NAMES);
    return checkChanges(changes, folder, standing, field);
  }

  function change({ agentId }: WorkspaceRef, staged: StagedChange, isTainted = false): IndexedFile[] {
    changing.commit(staged);
    const files = staged.files.map(({ name, size, mtimeMs }) => ({ name, size, updatedAt: Math.floor(mtimeMs) }));
    indexChanges(agentId, files, staged.changes, isTainted);
    return files;
  }

  function existing(place: WorkspaceRef, name: string): WorkspaceFile {
    const file = readFile(folderOf(place), parseFileName(name, "file"));
    if (!file) throw notFound("file");
    return file;
  }

  const etagNow = (place: WorkspaceRef, file: string) => () => readFile(folderOf(place), file)?.etag ?? null;
  const isOnDisk = (place: WorkspaceRef, file: string) => openJail(folderOf(place)).stat(file) !== null;

  return {
    createInstanceFolder: (instanceId) => createInstanceFolder(instanceFolder(instanceId)),
    check,
    recheck: (place, changes) =>
      void check(
        place,
        changes.map(({ name, bytes }) => ({ name, content: bytes })),
      ),
    inTurn: changing.inTurn,
    tidy: changing.tidy,
    change,
    index(agentId, files, isTainted) {
      for (const file of files) index.put(agentId, file, isTainted(file.name));
    },
    taintedOf: ({ agentId }, names) => index.taintedOf(agentId, names),
    texts(place, written = []) {
      const bytes = new Map(written.flatMap((one) => (one.bytes === null ? [] : [[one.name, one.bytes]])));
      return showTexts(index, place.agentId, folderOf(place), bytes);
    },
    names(page) {
      for (const { agentId } of page) reindexing.soon(agentId);
      return showNames(index, page);
    },
    has: ({ agentId }, name) => index.find(agentId, name) !== undefined,
    isThere: (place, name) => isOnDisk(place, parseFileName(name, "file")),
    list: ({ agentId }, after, limit) => index.page(agentId, after, limit),
    entriesSoon: (place, parts) => openJail(folderOf(place)).entriesSoon(parts),
    listWithin: ({ agentId }, folder, limit) => index.within(agentId, folder, limit),
    some: (place, wanted) => promptTexts.read(folderOf(place), wanted),
    read: existing,
    checkWrite(place, name, bytes, condition) {
      const changes = check(place, [{ name, content: bytes }], "file");
      const file = parseFileName(name, "file");
      checkPreconditions(condition, etagNow(place, file));
      return { created: !isOnDisk(place, file), changes };
    },
    checkDelete(place, name, condition) {
      const file = parseFileName(name, "file");
      if (!isOnDisk(place, file)) throw notFound("file");
      checkPreconditions(condition, etagNow(place, file));
      return [{ name: file, bytes: null }];
    },
    refresh({ agentId, fileCount }) {
      try {
        if (fileCount <= SMALL_WORKSPACE && reindexSmall(reindexParts, agentId)) return;
      } catch (err) {
        // If the disk cannot be written, reading still works: the index is shown as it is.
        log.warn({ err, agentId }, "a workspace could not be compared with its index");
      }
      reindexing.soon(agentId);
    },
    reindexing,
    recover: changing.recover,
    settled: changing.settled,
    stop: changing.stop,
    async removeStrays(isKnown) {
      // An operator may have put something of his own beside them.
      const names = (await namesIn(instancesFolder)).filter((name) => isId("inst", name));
      const left: string[] = [];
      for (let at = 0; at < names.length; at += STRAYS_PER_TURN) {
        for (const name of names.slice(at, at + STRAYS_PER_TURN)) {
          if (!isKnown(name) && !(await removeEmptyInstanceFolder(instanceFolder(name)))) left.push(name);
        }
        await Bun.sleep(1);
      }
      if (left.length > 0) log.warn({ count: left.length, first: left[0] }, UNKNOWN_INSTANCES);
    },
    clearInstanceFolder(instanceId) {
      changing.forget(instanceId);
      return clearFolder(instanceFolder(instanceId));
    },
    clearTrash: (instanceId) => clearTrash(instanceFolder(instanceId)),
  };
}
