import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import { createFairQueue } from "../lib/fair-queue.ts";
import { createCheckpoints, type Progress } from "./checkpoints.ts";
import { type CommitHook, follow, undoAll } from "./commit-hooks.ts";
import { createCommitSchedule } from "./commit-schedule.ts";
import { createPrivately, damagedError, isDamage, openError, prepareConnection, quickCheck } from "./connection.ts";
import { migrate } from "./migrate.ts";
import { createSnapshot, type Snapshot } from "./snapshot.ts";
import { prepareTransactions } from "./transactions.ts";
import { createWalSync, type WalSync } from "./wal-sync.ts";

export type Db = BunSQLiteDatabase & { $client: Database };

/**
 * `full`: on disk when it returns, also after a loss of power. `process`: survives the death of this process, which is
 * what an event needs before it is shown; its disk write is left to the next checkpoint or `full` commit.
 */
export type Durability = "full" | "process";

/** The one writer of the database in this process. */
export interface Store {
  readonly db: Db;
  readonly sqlite: Database;
  /**
   * Runs `work` in one `BEGIN IMMEDIATE`, or in a savepoint of the open transaction. Durable (`full`) when it returns.
   */
  transaction<T>(work: () => T): T;
  /**
   * Runs `then` after the open transaction has committed, or at once if none is open; runs `otherwise`, in reverse
   * order, when the transaction or the current savepoint rolls back. All of them run, even if one throws: what `then` throws
   * is reported, and not to whoever made the change.
   */
  afterCommit(then: () => void, otherwise?: () => void): void;
  /**
   * Adds `work` to the commit at the end of this turn of the event loop: thousands of small writes cost one commit.
   * Each work succeeds or fails alone. Accounts take turns, and those of one are done in the order added; what the host
   * does for itself takes turns as `owner` "". Resolves with the work's result once it is committed, its
   * `afterCommit` hooks have run and, where its durability is `full`, the disk has it: the thread does not wait for that.
   */
  commitSoon<T>(work: () => T, durability: Durability, owner?: string): Promise<T>;
  /**
   * Lets the reads until the end of this turn of the event loop share one snapshot: locking and unlocking the file for
   * each costs more than the read itself. Every write still goes through a transaction.
   */
  readTogether(): void;
  /** A read that asks the database once for each key while reads share a snapshot. */
  readonly oncePerSnapshot: Snapshot["oncePerSnapshot"];
  /** False once the disk has failed to keep a write: no later one succeeds. */
  keepsWrites(): boolean;
  close(): void;
}

interface Pending {
  work: () => unknown;
  durability: Durability;
  resolve: (result: unknown) => void;
  reject: (reason: unknown) => void;
}

/** A work that was done in a commit that is still open. */
interface Attempt {
  /** Whether it has written something that is to be on disk. */
  syncs: boolean;
  /** `synced` is the sync of its commit. */
  succeed(synced: Promise<void>): void;
  fail(reason: unknown): void;
}

/** After so long a commit takes up no more work, so that requests are answered in between. */
const MAX_COMMIT_WORK_MS = 8;
/** The same for the work of one account, however many wait. */
const MAX_WORK_OF_ONE_MS = 4;

/** By default what a hook throws is an unhandled rejection, which a server logs. */
const report = (error: unknown): void => void Promise.reject(error);

/** Opens (and creates, checks, migrates) `<data>/roost.db`. Throws, saying how to fix it, when that fails. */
export function openStore(
  dataDir: string,
  syncOf: (path: string) => WalSync = createWalSync,
  onHookFailure = report,
): Store {
  const path = join(dataDir, "roost.db");
  const sqlite = openFile(dataDir, path);
  try {
    prepareConnection(sqlite);
    quickCheck(sqlite, path);
    migrate(sqlite, dataDir);
  } catch (error) {
    sqlite.close();
    throw isDamage(error) ? damagedError(path, error.message) : openError(path, error);
  }
  return createStore(sqlite, path, syncOf(`${path}-wal`), onHookFailure);
}

function openFile(dataDir: string, path: string): Database {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    createPrivately(path);
    return new Database(path, { create: true, strict: true });
  } catch (error) {
    throw openError(path, error);
  }
}

function createStore(sqlite: Database, path: string, walSync: WalSync, onHookFailure: typeof report): Store {
  const hooks: CommitHook[] = [];
  const pending = createFairQueue<Pending>();
  let closed = false;
  /** Why the disk no longer takes anything: what a sync lost is nowhere, so nothing later can be relied on. */
  let lost: Error | undefined;
  const schedule = createCommitSchedule(commitPending);
  let current: Durability = "full";

  const transactions = prepareTransactions(sqlite);
  const snapshot = createSnapshot(sqlite, transactions);
  const noCheckpoint = sqlite.query<Progress, []>("PRAGMA wal_checkpoint(NOOP)");
  const checkpoints = createCheckpoints({
    path,
    logFile: walSync.file,
    checkpoint() {
      snapshot.end();
      setDurability("process");
      sqlite.run("PRAGMA synchronous = OFF");
      try {
        return sqlite.query<Progress, []>("PRAGMA wal_checkpoint(PASSIVE)").get() ?? { log: 0, checkpointed: 0 };
      } finally {
        sqlite.run("PRAGMA synchronous = NORMAL");
      }
    },
    progress() {
      snapshot.end();
      return noCheckpoint.get() ?? { log: 0, checkpointed: 0 };
    },
    commits: schedule,
    lose: loseDisk,
    leaveTo: (frames) => void sqlite.run(`PRAGMA wal_autocheckpoint = ${frames}`),
  });

  /** Removes and returns the hooks beyond the first `kept`. */
  const takeHooks = (kept = 0): CommitHook[] => hooks.splice(kept);

  /** Runs `work` in a savepoint; rolls back its hooks with it. */
  function nested<T>(work: () => T): T {
    const kept = hooks.length;
    try {
      return transactions.savepoint(work);
    } catch (error) {
      undoAll(takeHooks(kept));
      throw error;
    }
  }

  function setDurability(durability: Durability): void {
    if (durability === current) return;
    sqlite.run(`PRAGMA synchronous = ${durability === "full" ? "FULL" : "NORMAL"}`);
    current = durability;
  }

  function transaction<T>(work: () => T): T {
    snapshot.end();
    if (lost) throw lost;
    if (sqlite.inTransaction) return nested(work);
    const displaced = walSync.displaced();
    if (displaced) throw loseDisk(displaced);
    setDurability("full");
    return outermost(work);
  }

  function outermost<T>(work: () => T): T {
    let result: T;
    try {
      result = transactions.immediate(work);
    } catch (error) {
      undoAll(takeHooks());
      throw error;
    }
    checkpoints.committed();
    follow(takeHooks(), onHookFailure);
    return result;
  }

  /** Does one work of a shared commit; returns what to do once the commit has succeeded, or failed. */
  function attempt({ work, durability, resolve, reject }: Pending): Attempt {
    try {
      const result = nested(work);
      const own = takeHooks();
      return {
        syncs: durability === "full",
        succeed(synced) {
          follow(own, onHookFailure);
          if (durability === "process") resolve(result);
          else
            synced.then(
              () => resolve(result),
              (reason) => reject(loseDisk(reason)),
            );
        },
        fail(reason) {
          reject(reason);
          undoAll(own);
        },
      };
    } catch (reason) {
      // SQLite has rolled back the whole commit, as on a full disk: the next work would run outside of it.
      if (!sqlite.inTransaction) throw reason;
      return { syncs: false, succeed: () => reject(reason), fail: () => reject(reason) };
    }
  }

  /** Does what waits, as far as there is time: accounts take turns. */
  function attemptPending(attempts: Attempt[]): void {
    const spentMs = new Map<string, number>();
    let began = performance.now();
    const endMs = began + MAX_COMMIT_WORK_MS;
    pending.serve((work, owner) => {
      const before = spentMs.get(owner) ?? 0;
      if (began > endMs || before > MAX_WORK_OF_ONE_MS) return "skip owner";
      attempts.push(attempt(work));
      const now = performance.now();
      spentMs.set(owner, before + now - began);
      began = now;
      return "taken";
    });
  }

  function commitPending(): void {
    if (pending.isEmpty()) return; // `close` has committed them
    const attempts: Attempt[] = [];
    snapshot.end();
    setDurability("process");
    const began = performance.now();
    try {
      outermost(() => attemptPending(attempts));
    } catch (reason) {
      for (const { fail } of attempts.toReversed()) fail(reason);
      // Also those that were not attempted, because the transaction could not even begin.
      pending.serve(({ reject }) => {
        reject(reason);
        return "taken";
      });
      return;
    } finally {
      if (attempts.some(({ syncs }) => syncs)) schedule.spend(performance.now() - began);
      if (!pending.isEmpty()) schedule.soon();
    }
    // Begun before the hooks, which take a while: the disk is at work meanwhile.
    const synced = attempts.some(({ syncs }) => syncs) ? walSync.sync() : Promise.resolve();
    synced.catch(loseDisk);
    // Hooks mostly read: for example, they look for the next run of each agent whose run has ended.
    snapshot.begin();
    for (const { succeed } of attempts) succeed(synced);
  }

  function loseDisk(reason: unknown): Error {
    lost ??= new Error("the disk did not keep what was written: check it, then restart the server", { cause: reason });
    return lost;
  }

  return {
    db: drizzle({ client: sqlite }),
    sqlite,
    transaction,
    afterCommit(then, otherwise = () => {}) {
      if (sqlite.inTransaction && !snapshot.isOpen()) hooks.push({ then, otherwise });
      else then();
    },
    commitSoon(work, durability, owner = "") {
      if (closed) return Promise.reject(new Error("the database is closed"));
      if (lost) return Promise.reject(lost);
      schedule.soon();
      const { promise, resolve, reject } = Promise.withResolvers<ReturnType<typeof work>>();
      pending.add(owner, { work, durability, resolve: resolve as (result: unknown) => void, reject });
      return promise;
    },
    readTogether() {
      if (!closed) snapshot.begin();
    },
    oncePerSnapshot: snapshot.oncePerSnapshot,
    keepsWrites: () => lost === undefined,
    close() {
      if (closed) return;
      while (!pending.isEmpty()) commitPending();
      snapshot.end();
      checkpoints.close();
      walSync.close();
      closed = true;
      sqlite.close();
    },
  };
}
