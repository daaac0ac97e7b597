import { join } from "node:path";
import { and, eq, isNull, sql } from "drizzle-orm";
import { instances } from "../instances/schema.ts";
import { notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { lazily } from "../lib/lazily.ts";
import type { Log } from "../lib/log.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import { clearFolder, clearTrash, namesIn } from "../workspace/clear-folder.ts";
import { NO_NAMES, parseFileName } from "../workspace/file-name.ts";
import { openJail } from "../workspace/jail.ts";
import {
  type CheckedChange,
  checkChanges,
  createInstanceFolder,
  type FileChange,
  readFile,
  readTexts,
  refuseOverWorkspace,
  type WorkspaceFile,
  workspaceFolder,
} from "../workspace/workspace.ts";
import { type Condition, checkCondition } from "./condition.ts";
import { reindexSmall, SMALL_WORKSPACE } from "./reindex.ts";
import { createReindexer, type Reindexer } from "./reindexer.ts";
import { type Agent, agents } from "./schema.ts";
import { type ShownNames, type ShownTexts, showNames, showTexts } from "./shown-files.ts";
import { createWorkspaceChanges, type StagedChange, type WorkspaceChanges } from "./workspace-changes.ts";
import { createWorkspaceFiles, type IndexedFile } from "./workspace-files.ts";

/** Files that one request may bring (api.md section 1, Sizes). */
export const FILES_IN_A_REQUEST = 64;
/** Folders of instances that are looked at in one turn, after a start. */
const STRAYS_AT_ONCE = 500;

/** Whose workspace, and where. */
export type Place = Pick<Agent, "agentId" | "instanceId" | "slug">;

/** Agents' workspaces as the rules use them: which folder is whose, what it holds, and what follows which commit. */
export interface Workspaces {
  /** It is on disk before anything in it is. */
  createInstanceFolder(instanceId: string): void;
  /**
   * The changes as a workspace can take them, a new one where `place` is null. Throws `invalid_request` for a bad name,
   * a clash, a file that is too large or no text that UTF-8 can hold.
   */
  check(place: Place | null, changes: readonly FileChange[], field?: string): CheckedChange[];
  /** The same of changes that were found good before, and may be so no more. */
  recheck(place: Place, changes: readonly CheckedChange[]): void;
  inTurn: WorkspaceChanges["inTurn"];
  /**
   * Has the workspace change with the transaction that is open: indexed now, and in place when it has committed. A crash
   * in between is mended by `recover`. Throws `conflict` over the quota of a workspace. Gives the files that are set.
   */
  change(place: Place, staged: StagedChange): IndexedFile[];
  /** Name → text of the text files, as far as a record shows them, with what is about to be written. */
  texts(place: Place, written?: readonly CheckedChange[]): ShownTexts;
  /** Of each agent on a page of them. */
  names(page: readonly Agent[]): Map<string, ShownNames>;
  has(place: Place, name: string): boolean;
  /** By name, behind `after`. */
  list(place: Place, after: string, limit: number): IndexedFile[];
  /** Those of the named files of the workspace's top that are there and are text, in the order of the names. */
  some(place: Place, names: readonly string[]): { name: string; text: string }[];
  /** Throws `not_found`. */
  read(place: Place, name: string): WorkspaceFile;
  /** What writes one file. Throws as `check`, and `precondition_failed`. `created` where there is none yet. */
  checkWrite(
    place: Place,
    name: string,
    bytes: Uint8Array,
    condition: Condition,
  ): { created: boolean; changes: CheckedChange[] };
  /** What deletes one file. Throws `not_found`, `precondition_failed`. */
  checkDelete(place: Place, name: string, condition: Condition): CheckedChange[];
  /** Sees to it that what an operator has done on the disk shows: at once in a small workspace, in others before long. */
  refresh(agent: Agent): void;
  reindexing: Reindexer;
  /** After a start, before anything else: finishes what was committed, removes what was not. */
  recover(): void;
  /** Once nothing is being changed. */
  settled(): Promise<void>;
  /** Has folders of instances that nobody knows cleared away: a crash came between a folder and its row. */
  removeStrays(isKnown: (instanceId: string) => boolean): Promise<void>;
  clearInstanceFolder(instanceId: string): AsyncIterator<void>;
  /** Clears away the workspaces that were removed in an instance. */
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
  const folderOf = ({ instanceId, slug }: Pick<Place, "instanceId" | "slug">) =>
    workspaceFolder(instanceFolder(instanceId), slug);
  const index = createWorkspaceFiles(db);
  const changing = createWorkspaceChanges({ store, log, removals, folderOf: instanceFolder });
  const placeOf = lazily(() =>
    db
      .select({ instanceId: agents.instanceId, slug: agents.slug })
      .from(agents)
      .innerJoin(instances, eq(instances.instanceId, agents.instanceId))
      .where(and(eq(agents.agentId, sql.placeholder("agentId")), isNull(agents.removedAt), isNull(instances.removedAt)))
      .prepare(),
  );

  /** As it is now: a comparison with the disk takes many turns, and the workspace may move or go meanwhile. */
  function jailOf(agentId: string) {
    const place = placeOf().get({ agentId });
    return place !== undefined && changing.isInPlace(place.instanceId) ? openJail(folderOf(place)) : null;
  }
  const reindexParts = { index, jailOf, store };
  const reindexing = createReindexer({ ...reindexParts, clock, log });

  function indexChanges(agentId: string, files: readonly IndexedFile[], changes: readonly CheckedChange[]): void {
    const before = index.totals(agentId);
    for (const { name, bytes } of changes) if (bytes === null) index.drop(agentId, name);
    for (const file of files) index.put(agentId, file);
    refuseOverWorkspace(before, index.totals(agentId));
  }

  function check(place: Place | null, changes: readonly FileChange[], field?: string): CheckedChange[] {
    const folder = place && folderOf(place);
    const standing = (without: ReadonlySet<string>) => (place ? index.standing(place.agentId, without) : NO_NAMES);
    return checkChanges(changes, folder, standing, field);
  }

  function change({ agentId }: Place, staged: StagedChange): IndexedFile[] {
    changing.commit(staged);
    const files = staged.files.map(({ name, size, mtimeMs }) => ({ name, size, updatedAt: Math.floor(mtimeMs) }));
    indexChanges(agentId, files, staged.changes);
    return files;
  }

  function existing(place: Place, name: string): WorkspaceFile {
    const file = readFile(folderOf(place), parseFileName(name, "file"));
    if (!file) throw notFound("file");
    return file;
  }

  const etagNow = (place: Place, file: string) => () => readFile(folderOf(place), file)?.etag ?? null;
  const isOnDisk = (place: Place, file: string) => openJail(folderOf(place)).stat(file) !== null;

  return {
    createInstanceFolder: (instanceId) => createInstanceFolder(instanceFolder(instanceId)),
    check,
    recheck: (place, changes) =>
      void check(
        place,
        changes.map(({ name, bytes }) => ({ name, content: bytes })),
      ),
    inTurn: changing.inTurn,
    change,
    texts(place, written = []) {
      const bytes = new Map(written.flatMap((one) => (one.bytes === null ? [] : [[one.name, one.bytes]])));
      return showTexts(index, place.agentId, folderOf(place), bytes);
    },
    names(page) {
      for (const { agentId } of page) reindexing.soon(agentId);
      return showNames(index, page);
    },
    has: ({ agentId }, name) => index.find(agentId, name) !== undefined,
    list: ({ agentId }, after, limit) => index.page(agentId, after, limit),
    some: (place, wanted) => readTexts(folderOf(place), wanted),
    read: existing,
    checkWrite(place, name, bytes, condition) {
      const changes = check(place, [{ name, content: bytes }], "file");
      const file = parseFileName(name, "file");
      checkCondition(condition, etagNow(place, file));
      return { created: !isOnDisk(place, file), changes };
    },
    checkDelete(place, name, condition) {
      const file = parseFileName(name, "file");
      if (!isOnDisk(place, file)) throw notFound("file");
      checkCondition(condition, etagNow(place, file));
      return [{ name: file, bytes: null }];
    },
    refresh({ agentId, fileCount }) {
      try {
        if (fileCount <= SMALL_WORKSPACE && reindexSmall(reindexParts, agentId)) return;
      } catch (err) {
        // A disk that takes no writes stops nobody from reading: the index is told as it stands.
        log.warn({ err, agentId }, "a workspace could not be compared with its index");
      }
      reindexing.soon(agentId);
    },
    reindexing,
    recover: changing.recover,
    settled: changing.settled,
    async removeStrays(isKnown) {
      const names = await namesIn(instancesFolder);
      for (let at = 0; at < names.length; at += STRAYS_AT_ONCE) {
        for (const name of names.slice(at, at + STRAYS_AT_ONCE)) if (!isKnown(name)) removals.add("instance", name);
        await Bun.sleep(1);
      }
    },
    clearInstanceFolder(instanceId) {
      changing.forget(instanceId);
      return clearFolder(instanceFolder(instanceId));
    },
    clearTrash: (instanceId) => clearTrash(instanceFolder(instanceId)),
  };
}
