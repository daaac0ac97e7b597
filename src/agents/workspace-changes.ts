import fs from "node:fs";
import { join } from "node:path";
import { and, eq, isNull, sql } from "drizzle-orm";
import { instances } from "../instances/schema.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import { newId } from "../lib/id.ts";
import type { Log } from "../lib/log.ts";
import { createFairLimiter } from "../limits/fair-limiter.ts";
import { createSlots } from "../limits/slots.ts";
import { prepared } from "../storage/prepared.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import { type CheckedChange, createInstanceFolderSoon, STAGING, TRASH } from "../workspace/workspace.ts";
import {
  type Applied,
  applyChange,
  discardChange,
  finishChange,
  recoverChanges,
  type StagedFile,
  stageChange,
  stageFolder,
  type WorkspaceTarget,
} from "../workspace/workspace-change.ts";
import { workspaceChanges } from "./schema.ts";

/** A change that is on disk but not visible yet: a transaction applies it. */
export interface StagedChange {
  readonly changeId: string;
  readonly instanceId: string;
  readonly changes: readonly CheckedChange[];
  /** The files that it writes. */
  readonly files: readonly StagedFile[];
}

export type Stage = (
  target: WorkspaceTarget,
  changes: readonly CheckedChange[] | FolderOnDisk,
) => Promise<StagedChange>;

/** A workspace's folder that is complete and on disk (workspace-change.ts, `stageFolder`). */
export interface FolderOnDisk {
  folder: string;
}

/** Whose workspaces to change. */
export interface WorkspaceOwner {
  accountId: string;
  instanceId: string;
}

/** Writes workspace changes to disk, atomically with the database, without blocking other requests. */
export interface WorkspaceChanges {
  /**
   * Runs `work` when its turn comes; it may stage one change. An account's turns run one after the other, so that a
   * change finds all earlier ones in place. When this resolves, what was committed is on disk and what was not is gone.
   * `bytes` are held in memory until then. Throws `rate_limited` if too much of the account waits, 503 if too much of
   * the host does.
   */
  inTurn<T>(whose: WorkspaceOwner, bytes: number, work: (stage: Stage) => Promise<T>): Promise<T>;
  /** Applies the change with the open transaction. */
  commit(staged: StagedChange): void;
  /** False while a committed change of the instance has files that are not in place yet. */
  isInPlace(instanceId: string): boolean;
  /** After a start, before anything else: finishes what was committed, removes what was not. */
  recover(): void;
  /** The same for one instance, unless a change of it has been made since the start. */
  tidy(instanceId: string): void;
  /** Call it when the instance's folder is removed. */
  forget(instanceId: string): void;
  /** Resolves when no turn runs or waits. */
  settled(): Promise<void>;
  /** Refuses turns that have not begun: nothing of them was acknowledged. Resolves when none runs. */
  stop(): Promise<void>;
}

export interface WorkspaceChangesParts {
  store: Store;
  log: Log;
  removals: Pick<Removals, "add">;
  folderOf(instanceId: string): string;
}

/** Turns of different accounts that run at once: they share the disk with everybody's commits. */
const CONCURRENCY = 2;
/** Turns of one account that may wait: more than its rate admits in a second. */
const MAX_WAITING = 256;
/** Contents that wait or are being written. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

interface Progress {
  isCommitted: boolean;
  /** Null until its files are in place. */
  applied: Applied | null;
}

export function createWorkspaceChanges({ store, log, removals, folderOf }: WorkspaceChangesParts): WorkspaceChanges {
  const { db, afterCommit, transaction } = store;
  const lanes = createFairLimiter({ concurrency: CONCURRENCY, maxPerOwner: 1, maxWaiting: MAX_WAITING });
  const contents = createSlots({ total: MAX_WAITING_BYTES });
  const works = new Set<Promise<void>>();
  /** Instances whose staged changes are all from this process; `"on disk"` once their folders are on disk too. */
  const opened = new Map<string, "tidy" | "on disk">();
  /** Changes from their staging until their row is removed. */
  const progress = new Map<string, Progress>();
  let stopping = false;

  const instanceIs = eq(workspaceChanges.instanceId, sql.placeholder("instanceId"));
  const changes = prepared(db, () => db.select().from(workspaceChanges).where(instanceIs));
  const removeChange = prepared(db, () =>
    db.delete(workspaceChanges).where(eq(workspaceChanges.changeId, sql.placeholder("changeId"))),
  );
  const standing = prepared(db, () =>
    db
      .select({ instanceId: instances.instanceId })
      .from(instances)
      .where(and(eq(instances.instanceId, sql.placeholder("instanceId")), isNull(instances.removedAt))),
  );

  /** Applies committed changes that an earlier turn or process left in this instance, and removes uncommitted ones. */
  function tidy(instanceId: string): void {
    if (opened.has(instanceId)) return;
    const folder = folderOf(instanceId);
    const committed = new Set(changes.all({ instanceId }).map(({ changeId }) => changeId));
    recoverChanges(folder, (changeId) => committed.has(changeId));
    if (committed.size > 0) {
      transaction(() => {
        for (const changeId of committed) removeChange.run({ changeId });
      });
      for (const changeId of committed) progress.delete(changeId);
    }
    if (hasTrash(folder)) removals.add("trash", instanceId);
    opened.set(instanceId, "tidy");
  }

  async function open(instanceId: string): Promise<void> {
    tidy(instanceId);
    if (opened.get(instanceId) === "on disk") return;
    await createInstanceFolderSoon(folderOf(instanceId));
    opened.set(instanceId, "on disk");
  }

  /** A change without its manifest counts as done, so its row is removed with a later commit, without waiting. */
  function forgetSoon({ changeId, instanceId }: StagedChange): void {
    track(
      store
        .commitSoon(() => void removeChange.run({ changeId }), "process")
        .then(() => void progress.delete(changeId))
        .catch((err: unknown) =>
          log.warn(
            { err, changeId, instanceId },
            "the record of a finished workspace change could not be removed; the next start removes it",
          ),
        ),
    );
  }

  /** What the stop must wait for. Never rejects. */
  function track(work: Promise<void>): void {
    works.add(work);
    void work.then(() => works.delete(work));
  }

  /** Finishes or removes what a turn left; if that fails, the instance is tidied before its next turn. */
  async function end(change: StagedChange, { isCommitted, applied }: Progress): Promise<void> {
    const { changeId, instanceId } = change;
    const folder = folderOf(instanceId);
    try {
      if (!isCommitted) {
        progress.delete(changeId);
        await discardChange(folder, changeId);
      } else if (applied === null) opened.delete(instanceId);
      else {
        await finishChange(folder, changeId, applied);
        forgetSoon(change);
      }
    } catch (error) {
      opened.delete(instanceId);
      // If the instance was deleted meanwhile, its folder is removed with it.
      if (isStanding(instanceId)) throw error;
    }
  }

  const isStanding = (instanceId: string) => standing.get({ instanceId }) !== undefined;

  async function takeTurn<T>(instanceId: string, work: (stage: Stage) => Promise<T>): Promise<T> {
    let staged: StagedChange | undefined;
    const own: Progress = { isCommitted: false, applied: null };
    if (stopping) throw stopped();
    try {
      await open(instanceId);
      return await work(async (target, changes) => {
        if (staged !== undefined) throw new TypeError("a turn stages one change");
        // Ids sort by creation, which is the order in which a recovery must apply changes.
        const changeId = newId("change");
        if ("folder" in changes) {
          await stageFolder(folderOf(instanceId), changeId, target.slug, changes.folder);
          staged = { changeId, instanceId, changes: [], files: [] };
        } else {
          const files = await stageChange(folderOf(instanceId), changeId, target, changes);
          staged = { changeId, instanceId, changes, files };
        }
        progress.set(changeId, own);
        return staged;
      });
    } catch (error) {
      // An instance deleted meanwhile took its folder from under the change.
      throw isStanding(instanceId) || error instanceof AppError ? error : notFound("instance");
    } finally {
      if (staged !== undefined) await end(staged, own);
      // The folder of an instance deleted meanwhile may have been removed before this turn created it again.
      if (!own.isCommitted && !isStanding(instanceId)) {
        await store.commitSoon(() => removals.add("instance", instanceId), "process");
      }
    }
  }

  async function settled(): Promise<void> {
    while (works.size > 0) await Promise.all(works);
  }

  return {
    inTurn<T>(
      { accountId, instanceId }: WorkspaceOwner,
      bytes: number,
      work: (stage: Stage) => Promise<T>,
    ): Promise<T> {
      if (contents.acquire(accountId, bytes) !== "taken") throw contents.inUse(accountId) > 0 ? tooMuch() : busy();
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      const turn = () =>
        takeTurn(instanceId, work)
          .finally(() => contents.release(accountId, bytes))
          .then(resolve, reject);
      if (!lanes.submit(accountId, turn)) {
        contents.release(accountId, bytes);
        throw tooMuch();
      }
      track(
        promise.then(
          () => {},
          () => {},
        ),
      );
      return promise;
    },
    commit({ changeId, instanceId }) {
      const own = progress.get(changeId);
      if (own === undefined) throw new TypeError("no change of this turn");
      afterCommit(() => {
        own.isCommitted = true;
        own.applied = applyChange(folderOf(instanceId), changeId);
      });
      db.insert(workspaceChanges).values({ changeId, instanceId }).run();
    },
    isInPlace(instanceId) {
      tidy(instanceId);
      return changes.all({ instanceId }).every(({ changeId }) => (progress.get(changeId)?.applied ?? null) !== null);
    },
    recover() {
      const unfinished = db.selectDistinct({ instanceId: workspaceChanges.instanceId }).from(workspaceChanges).all();
      // An uncommitted staged change does no harm; the instance's next change removes it.
      for (const { instanceId } of unfinished) tidy(instanceId);
    },
    tidy,
    forget: (instanceId) => void opened.delete(instanceId),
    settled,
    stop() {
      stopping = true;
      return settled();
    },
  };
}

const tooMuch = () =>
  new AppError("rate_limited", "too many changes of the account's workspaces wait for the disk", {
    retryAfterSeconds: 1,
  });

const stopped = () =>
  new AppError("internal_error", "the host is stopping; try again", {
    status: 503,
    retryAfterSeconds: 1,
    isKept: false,
  });

const busy = () =>
  new AppError("internal_error", "this host has too many writes in progress; try again in a moment", {
    status: 503,
    retryAfterSeconds: 1,
    isKept: false,
  });

function hasTrash(instanceFolder: string): boolean {
  const staging = join(instanceFolder, STAGING);
  return fs.existsSync(staging) && fs.readdirSync(staging).some((name) => name.startsWith(TRASH));
}
