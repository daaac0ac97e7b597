import fs from "node:fs";
import { join } from "node:path";
import { and, eq, isNull, sql } from "drizzle-orm";
import { instances } from "../instances/table.ts";
import { notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { readEmbeddedFolder } from "../lib/embedded-folder.ts";
import { newId } from "../lib/id.ts";
import { lazily } from "../lib/lazily.ts";
import type { Log } from "../lib/log.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import { clearFolder, clearTrash, namesIn } from "./clear-folder.ts";
import { type Condition, checkCondition } from "./condition.ts";
import { NO_NAMES, parseFileName } from "./file-name.ts";
import { openJail } from "./jail.ts";
import { reindexSmall, SMALL_WORKSPACE } from "./reindex.ts";
import { createReindexing, type Reindexing } from "./reindexing.ts";
import { type ShownNames, type ShownTexts, showNames, showTexts } from "./showing.ts";
import { type Agent, agents, workspaceChanges } from "./table.ts";
import {
  type CheckedChange,
  checkChanges,
  createInstanceFolder,
  decodeText,
  etagOf,
  type FileChange,
  readFile,
  readTexts,
  refuseOverWorkspace,
  STAGING,
  TRASH,
  type WorkspaceFile,
  workspaceFolder,
} from "./workspace.ts";
import { applyChange, discardChange, recoverChanges, stageChange, type WorkspaceTarget } from "./workspace-change.ts";
import { createWorkspaceFiles, type IndexedFile } from "./workspace-files.ts";

/** Files that one request may bring (api.md section 1, Sizes). */
export const FILES_IN_A_REQUEST = 64;
/** Folders of instances that are looked at in one turn, after a start. */
const STRAYS_AT_ONCE = 500;

/** Whose workspace, and where. */
export type Place = Pick<Agent, "agentId" | "instanceId" | "slug">;

/** Agents' workspaces as the rules use them: which folder is whose, what it holds, and what follows which commit. */
export interface Workspaces {
  createInstanceFolder(instanceId: string): void;
  /**
   * The changes as a workspace can take them, a new one where `place` is null. Throws `invalid_request` for a bad name,
   * a clash, a file that is too large or no text that UTF-8 can hold.
   */
  check(place: Place | null, changes: readonly FileChange[], field?: string): CheckedChange[];
  /**
   * Changes a workspace with the transaction that is open: indexed and staged now, carried out after its commit, and
   * finished by `recover` if a crash comes between. Throws `conflict` over the quota of a workspace.
   */
  change(place: Place, target: WorkspaceTarget, changes: readonly CheckedChange[]): void;
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
  /** In the transaction that is open. Throws as `check` and `change`, and `precondition_failed`. */
  write(
    place: Place,
    name: string,
    bytes: Uint8Array,
    condition: Condition,
  ): { created: boolean; file: IndexedFile; etag: string };
  /** In the transaction that is open. Throws `not_found`, `precondition_failed`. */
  delete(place: Place, name: string, condition: Condition): void;
  /** Sees to it that what an operator has done on the disk shows: at once in a small workspace, in others before long. */
  refresh(agent: Agent): void;
  reindexing: Reindexing;
  /** After a start, before anything else: finishes what was committed, removes what was not. */
  recover(): void;
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
  const { db, afterCommit, transaction } = store;
  const instancesFolder = join(dataDir, "instances");
  const instanceFolder = (instanceId: string) => join(instancesFolder, instanceId);
  const folderOf = ({ instanceId, slug }: Pick<Place, "instanceId" | "slug">) =>
    workspaceFolder(instanceFolder(instanceId), slug);
  const index = createWorkspaceFiles(db);
  /** Instances whose staged changes are all of this process. */
  const tidied = new Set<string>();

  const rowOf = eq(workspaceChanges.changeId, sql.placeholder("changeId"));
  const removeChange = lazily(() => db.delete(workspaceChanges).where(rowOf).prepare());

  /** Without its manifest a change counts as done: so its row may go with the next commit, and need not be waited for. */
  function forgetSoon(changeId: string): void {
    store
      .commitSoon(() => void removeChange().run({ changeId }), "process")
      .catch((err: unknown) =>
        log.warn({ err, changeId }, "a finished change is still noted; the next start forgets it"),
      );
  }

  /** Changes whose files have not followed their commit, or whose commit is yet to come. */
  const changes = lazily(() =>
    db
      .select()
      .from(workspaceChanges)
      .where(eq(workspaceChanges.instanceId, sql.placeholder("instanceId")))
      .prepare(),
  );
  const changesOf = (instanceId: string) => changes().all({ instanceId });
  const placeOf = lazily(() =>
    db
      .select({ instanceId: agents.instanceId, slug: agents.slug })
      .from(agents)
      .innerJoin(instances, eq(instances.instanceId, agents.instanceId))
      .where(and(eq(agents.agentId, sql.placeholder("agentId")), isNull(agents.removedAt), isNull(instances.removedAt)))
      .prepare(),
  );

  /** Carries out what an earlier process left committed in this instance, and removes what it left uncommitted. */
  function finishChanges(instanceId: string): void {
    const committed = new Set(changesOf(instanceId).map(({ changeId }) => changeId));
    recoverChanges(instanceFolder(instanceId), (changeId) => committed.has(changeId));
    transaction(() => {
      for (const changeId of committed) removeChange().run({ changeId });
    });
    if (hasTrash(instanceFolder(instanceId))) removals.add("trash", instanceId);
    tidied.add(instanceId);
  }

  /** As it is now: a comparison with the disk takes many turns, and the workspace may move or go meanwhile. */
  function jailOf(agentId: string) {
    const place = placeOf().get({ agentId });
    if (place === undefined) return null;
    const { instanceId } = place;
    if (!tidied.has(instanceId)) finishChanges(instanceId);
    return changesOf(instanceId).length > 0 ? null : openJail(folderOf(place));
  }
  const reindexParts = { index, jailOf, store };
  const reindexing = createReindexing({ ...reindexParts, clock, log });

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

  function change(place: Place, target: WorkspaceTarget, changes: readonly CheckedChange[]): IndexedFile[] {
    const { agentId, instanceId } = place;
    // An id of the API's form sorts by its making, which is the order in which a recovery must carry changes out.
    const changeId = newId("change");
    if (!tidied.has(instanceId)) finishChanges(instanceId);
    const staged = stageChange(instanceFolder(instanceId), changeId, target, changes);
    afterCommit(
      () => {
        applyChange(instanceFolder(instanceId), changeId);
        forgetSoon(changeId);
      },
      () => discardChange(instanceFolder(instanceId), changeId),
    );
    db.insert(workspaceChanges).values({ changeId, instanceId }).run();
    const files = staged.map(({ name, size, mtimeMs }) => ({ name, size, updatedAt: Math.floor(mtimeMs) }));
    indexChanges(agentId, files, changes);
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
    write(place, name, bytes, condition) {
      decodeText(bytes);
      const [checked] = check(place, [{ name, content: bytes }], "file");
      if (checked === undefined) throw new TypeError("a change was given");
      checkCondition(condition, etagNow(place, checked.name));
      const created = !isOnDisk(place, checked.name);
      const [file] = change(place, { kind: "edit", slug: place.slug }, [checked]);
      if (file === undefined) throw new TypeError("a file was written");
      return { created, file, etag: etagOf(bytes) };
    },
    delete(place, name, condition) {
      const file = parseFileName(name, "file");
      if (!isOnDisk(place, file)) throw notFound("file");
      checkCondition(condition, etagNow(place, file));
      change(place, { kind: "edit", slug: place.slug }, [{ name: file, bytes: null }]);
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
    recover() {
      const unfinished = db.selectDistinct({ instanceId: workspaceChanges.instanceId }).from(workspaceChanges).all();
      // What is staged and not committed does no harm until the instance's next change, which removes it.
      for (const { instanceId } of unfinished) finishChanges(instanceId);
    },
    async removeStrays(isKnown) {
      const names = await namesIn(instancesFolder);
      for (let at = 0; at < names.length; at += STRAYS_AT_ONCE) {
        for (const name of names.slice(at, at + STRAYS_AT_ONCE)) if (!isKnown(name)) removals.add("instance", name);
        await Bun.sleep(1);
      }
    },
    clearInstanceFolder: (instanceId) => clearFolder(instanceFolder(instanceId)),
    clearTrash: (instanceId) => clearTrash(instanceFolder(instanceId)),
  };
}

function hasTrash(instanceFolder: string): boolean {
  const staging = join(instanceFolder, STAGING);
  return fs.existsSync(staging) && fs.readdirSync(staging).some((name) => name.startsWith(TRASH));
}

/** The persona files of a new agent. */
export function readDefaultFiles(): Map<string, string> {
  const files = [...readEmbeddedFolder("workspaces")].flatMap(([path, text]): [string, string][] =>
    path.startsWith("default/") ? [[path.slice("default/".length), text]] : [],
  );
  return new Map(files);
}
