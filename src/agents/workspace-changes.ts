import fs from "node:fs";
import { join } from "node:path";
import { and, eq, isNull, sql } from "drizzle-orm";
import { instances } from "../instances/schema.ts";
import { AppError } from "../lib/app-error.ts";
import { newId } from "../lib/id.ts";
import { lazily } from "../lib/lazily.ts";
import type { Log } from "../lib/log.ts";
import { createFairLimiter } from "../limits/fair-limiter.ts";
import { createSlots } from "../limits/slots.ts";
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
  type WorkspaceTarget,
} from "../workspace/workspace-change.ts";
import { workspaceChanges } from "./schema.ts";

/** A change that is on disk and nowhere to be seen: it comes true with the transaction that is given it. */
export interface StagedChange {
  readonly changeId: string;
  readonly instanceId: string;
  readonly changes: readonly CheckedChange[];
  /** Those that it sets. */
  readonly files: readonly StagedFile[];
}

export type Stage = (target: WorkspaceTarget, changes: readonly CheckedChange[]) => Promise<StagedChange>;

/** Whose workspaces are to be changed. */
export interface Whose {
  accountId: string;
  instanceId: string;
}

/** Brings changes of workspaces to the disk, together with the database and beside everybody else's requests. */
export interface WorkspaceChanges {
  /**
   * Runs `work` when its turn comes; it may stage one change. An account's turns come one after the other, so that a
   * change finds all that came before it in place. When this resolves, what was committed is on disk and what was not
   * is gone. `bytes` are held in memory until then. Throws `rate_limited` where too much of the account waits, 503 where
   * too much of everybody does.
   */
  inTurn<T>(whose: Whose, bytes: number, work: (stage: Stage) => Promise<T>): Promise<T>;
  /** Makes the change come true with the transaction that is open. */
  commit(staged: StagedChange): void;
  /** False while a change of the instance is committed whose files are not in their places. */
  isInPlace(instanceId: string): boolean;
  /** After a start, before anything else: finishes what was committed, removes what was not. */
  recover(): void;
  /** To be told when the instance's folder goes. */
  forget(instanceId: string): void;
  /** Once no turn is being taken, and none waits. */
  settled(): Promise<void>;
}

export interface WorkspaceChangesParts {
  store: Store;
  log: Log;
  removals: Pick<Removals, "add">;
  folderOf(instanceId: string): string;
}

/** Turns of different accounts that are taken at once: they share one disk with everybody's commits. */
const TURNS_AT_ONCE = 2;
/** Of one account, at most: what its rates let in within a second and more. */
const WAITING = 256;
/** Of contents that wait, or are on their way to the disk. */
const WAITING_BYTES = 64 * 1024 * 1024;

interface Progress {
  isCommitted: boolean;
  /** Null until its files are in their places. */
  applied: Applied | null;
}

export function createWorkspaceChanges({ store, log, removals, folderOf }: WorkspaceChangesParts): WorkspaceChanges {
  const { db, afterCommit, transaction } = store;
  const lanes = createFairLimiter({ concurrency: TURNS_AT_ONCE, maxPerOwner: 1, maxWaiting: WAITING });
  const contents = createSlots({ total: WAITING_BYTES });
  const works = new Set<Promise<void>>();
  /** Instances whose staged changes are all of this process; `"on disk"` once their folders are, too. */
  const opened = new Map<string, "tidy" | "on disk">();
  /** From the staging of a change until its row is gone. */
  const progress = new Map<string, Progress>();

  const instanceIs = eq(workspaceChanges.instanceId, sql.placeholder("instanceId"));
  const changes = lazily(() => db.select().from(workspaceChanges).where(instanceIs).prepare());
  const removeChange = lazily(() =>
    db
      .delete(workspaceChanges)
      .where(eq(workspaceChanges.changeId, sql.placeholder("changeId")))
      .prepare(),
  );
  const standing = lazily(() =>
    db
      .select({ instanceId: instances.instanceId })
      .from(instances)
      .where(and(eq(instances.instanceId, sql.placeholder("instanceId")), isNull(instances.removedAt)))
      .prepare(),
  );

  /** Carries out what an earlier turn or process left committed in this instance, and removes what it left uncommitted. */
  function tidy(instanceId: string): void {
    if (opened.has(instanceId)) return;
    const folder = folderOf(instanceId);
    const committed = new Set(
      changes()
        .all({ instanceId })
        .map(({ changeId }) => changeId),
    );
    recoverChanges(folder, (changeId) => committed.has(changeId));
    if (committed.size > 0) {
      transaction(() => {
        for (const changeId of committed) removeChange().run({ changeId });
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

  /** Without its manifest a change counts as done: so its row may go with the next commit, and need not be waited for. */
  function forgetSoon(changeId: string): void {
    track(
      store
        .commitSoon(() => void removeChange().run({ changeId }), "process")
        .then(() => void progress.delete(changeId))
        .catch((err: unknown) =>
          log.warn({ err, changeId }, "a finished change is still noted; the next start forgets it"),
        ),
    );
  }

  /** What is to be waited for at the end. It never rejects. */
  function track(work: Promise<void>): void {
    works.add(work);
    void work.then(() => works.delete(work));
  }

  /** What a turn leaves is finished or gone; or the instance is tidied before its next one. */
  async function end({ changeId, instanceId }: StagedChange, { isCommitted, applied }: Progress): Promise<void> {
    const folder = folderOf(instanceId);
    try {
      if (!isCommitted) {
        progress.delete(changeId);
        await discardChange(folder, changeId);
      } else if (applied === null) opened.delete(instanceId);
      else {
        await finishChange(folder, changeId, applied);
        forgetSoon(changeId);
      }
    } catch (error) {
      opened.delete(instanceId);
      // Whoever has deleted the instance meanwhile has its folder cleared away.
      if (isStanding(instanceId)) throw error;
    }
  }

  const isStanding = (instanceId: string) => standing().get({ instanceId }) !== undefined;

  async function takeTurn<T>(instanceId: string, work: (stage: Stage) => Promise<T>): Promise<T> {
    let staged: StagedChange | undefined;
    const own: Progress = { isCommitted: false, applied: null };
    try {
      await open(instanceId);
      return await work(async (target, changes) => {
        if (staged !== undefined) throw new TypeError("a turn stages one change");
        // An id of the API's form sorts by its making, which is the order in which a recovery must carry changes out.
        const changeId = newId("change");
        const files = await stageChange(folderOf(instanceId), changeId, target, changes);
        staged = { changeId, instanceId, changes, files };
        progress.set(changeId, own);
        return staged;
      });
    } finally {
      if (staged !== undefined) await end(staged, own);
      // An instance that was deleted meanwhile may have had its folder cleared away before this turn has made it anew.
      if (!own.isCommitted && !isStanding(instanceId)) {
        await store.commitSoon(() => removals.add("instance", instanceId), "process");
      }
    }
  }

  return {
    inTurn<T>({ accountId, instanceId }: Whose, bytes: number, work: (stage: Stage) => Promise<T>): Promise<T> {
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
      return changes()
        .all({ instanceId })
        .every(({ changeId }) => (progress.get(changeId)?.applied ?? null) !== null);
    },
    recover() {
      const unfinished = db.selectDistinct({ instanceId: workspaceChanges.instanceId }).from(workspaceChanges).all();
      // What is staged and not committed does no harm until the instance's next change, which removes it.
      for (const { instanceId } of unfinished) tidy(instanceId);
    },
    forget: (instanceId) => void opened.delete(instanceId),
    async settled() {
      while (works.size > 0) await Promise.all(works);
    },
  };
}

const tooMuch = () =>
  new AppError("rate_limited", "too many changes of the account's workspaces wait for the disk", {
    retryAfterSeconds: 1,
  });

const busy = () =>
  new AppError("internal_error", "this host is writing as much as it can hold; try again in a moment", {
    status: 503,
    retryAfterSeconds: 1,
    isKept: false,
  });

function hasTrash(instanceFolder: string): boolean {
  const staging = join(instanceFolder, STAGING);
  return fs.existsSync(staging) && fs.readdirSync(staging).some((name) => name.startsWith(TRASH));
}
