import { Database } from "bun:sqlite";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import { prepareBrackets } from "./brackets.ts";
import { createCommitPace } from "./commit-pace.ts";
import { damaged, isDamage, prepareConnection, quickCheck, unopened } from "./connection.ts";
import { migrate } from "./migrate.ts";

export type Db = BunSQLiteDatabase;

/**
 * `full`: on disk when it returns, also after a loss of power. `process`: survives the death of this process, which is
 * what an event needs before it is shown; its disk write is left to the next checkpoint or `full` commit.
 */
export type Durability = "full" | "process";

/** The one writer of the database in this process. */
export interface Store {
  readonly db: Db;
  readonly sqlite: Database;
  /** Runs `work` in one `BEGIN IMMEDIATE`, or inside the transaction that is open. Durable (`full`) when it returns. */
  transaction<T>(work: () => T): T;
  /**
   * Runs `then` after the transaction that is open has committed, `otherwise` when it, or the savepoint that asked,
   * rolls back: those then run last first. Where none is open, `then` runs at once. What one of them throws stops none
   * of the others.
   */
  afterCommit(then: () => void, otherwise?: () => void): void;
  /**
   * Adds `work` to the commit at the end of this turn of the event loop: thousands of small writes cost one commit.
   * Each work stands or falls alone, in the order they were added; `durability` of the whole commit is the strictest
   * that was asked for. Resolves with the work's result when that is on disk and what was to follow it has run.
   */
  commitSoon<T>(work: () => T, durability: Durability): Promise<T>;
  /**
   * Lets the reads from here to the end of this turn share one snapshot. Each read alone locks the file and lets it go,
   * which costs more than the read; a turn answers many requests. Every write still goes through a transaction.
   */
  readTogether(): void;
  close(): void;
}

interface Pending {
  work: () => unknown;
  resolve: (result: unknown) => void;
  reject: (reason: unknown) => void;
}

interface Consequence {
  then: () => void;
  otherwise: () => void;
}

/** A commit takes up no more works once it has been at them for so long: requests in between are answered. */
const LONGEST_WORK_MS = 8;

/** Opens (and creates, checks, migrates) `<data>/roost.db`. Throws with the mend when the file is damaged, or not to be had. */
export function openStore(dataDir: string): Store {
  const path = join(dataDir, "roost.db");
  const sqlite = openFile(dataDir, path);
  try {
    prepareConnection(sqlite);
    quickCheck(sqlite, path);
    migrate(sqlite, dataDir);
  } catch (error) {
    sqlite.close();
    throw isDamage(error) ? damaged(path, error.message) : unopened(path, error);
  }
  return createStore(sqlite);
}

function openFile(dataDir: string, path: string): Database {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    createPrivately(path);
    return new Database(path, { create: true, strict: true });
  } catch (error) {
    throw unopened(path, error);
  }
}

/**
 * SQLite would create it readable by all. Its log and index take the database's mode. A file that exists is not opened:
 * to close it again would drop the locks that another connection of this process holds on it.
 */
function createPrivately(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}

function createStore(sqlite: Database): Store {
  const consequences: Consequence[] = [];
  let pending: Pending[] = [];
  let pendingDurability: Durability = "process";
  let closed = false;
  /** True while reads share a snapshot, which is nothing that anybody else means by a transaction. */
  let reading = false;

  const pace = createCommitPace();
  let changesBefore = 0;
  let current: Durability = "full";

  const changes = sqlite.prepare<{ total: number }, []>("SELECT total_changes() AS total");
  const totalChanges = () => changes.get()?.total ?? 0;
  const brackets = prepareBrackets(sqlite);

  /** What was asked to follow since there were `kept` of them, taken off the list. */
  const takeConsequences = (kept = 0): Consequence[] => consequences.splice(kept);

  /** A savepoint: what was to follow its commit is forgotten with it. */
  function nested<T>(work: () => T): T {
    const kept = consequences.length;
    try {
      return brackets.savepoint(work);
    } catch (error) {
      undoAll(takeConsequences(kept));
      throw error;
    }
  }

  function endReads(): void {
    if (!reading) return;
    reading = false;
    brackets.endReads();
    // A write among the reads would be acknowledged before it is committed. Tests run with this check, the binary without.
    if (process.env.NODE_ENV !== "production" && totalChanges() !== changesBefore) {
      throw new Error("something was written outside of a transaction");
    }
  }

  function readTogether(): void {
    if (closed || sqlite.inTransaction) return;
    if (process.env.NODE_ENV !== "production") changesBefore = totalChanges();
    brackets.beginReads();
    reading = true;
    setImmediate(endReads);
  }

  function setDurability(durability: Durability): void {
    if (durability === current) return;
    sqlite.run(`PRAGMA synchronous = ${durability === "full" ? "FULL" : "NORMAL"}`);
    current = durability;
  }

  function transaction<T>(work: () => T): T {
    endReads();
    if (sqlite.inTransaction) return nested(work);
    setDurability("full");
    return outermost(work);
  }

  function outermost<T>(work: () => T): T {
    let result: T;
    try {
      result = brackets.immediate(work);
    } catch (error) {
      undoAll(takeConsequences());
      throw error;
    }
    runAll(takeConsequences().map(({ then }) => then));
    return result;
  }

  /** Does one work of a shared commit; what is left to do once the commit has succeeded, or failed. */
  function attempt({ work, resolve, reject }: Pending): { succeed(): void; fail(reason: unknown): void } {
    try {
      const result = nested(work);
      const own = takeConsequences();
      return {
        succeed() {
          try {
            runAll(own.map(({ then }) => then));
            resolve(result);
          } catch (reason) {
            reject(reason);
          }
        },
        fail(reason) {
          reject(reason);
          undoAll(own);
        },
      };
    } catch (reason) {
      // SQLite has given up the whole commit, as on a full disk: a next work would be one of its own.
      if (!sqlite.inTransaction) throw reason;
      return { succeed: () => reject(reason), fail: () => reject(reason) };
    }
  }

  function commitPending(): void {
    const works = pending;
    const durability = pendingDurability;
    pending = [];
    pendingDurability = "process";
    if (works.length === 0) return; // `close` was faster
    const attempts: ReturnType<typeof attempt>[] = [];
    endReads();
    setDurability(durability);
    const began = performance.now();
    try {
      outermost(() => {
        for (const work of works) {
          attempts.push(attempt(work));
          if (performance.now() - began > LONGEST_WORK_MS) break;
        }
      });
    } catch (reason) {
      for (const { fail } of attempts.toReversed()) fail(reason);
      // Those that were not attempted, for one where the transaction could not even begin.
      for (const { reject } of works) reject(reason);
      return;
    } finally {
      if (durability === "full") pace.spent(performance.now() - began);
    }
    putBack(works.slice(attempts.length), durability);
    // What follows a commit reads much and writes seldom: the next runs of all those that ended, for one.
    readTogether();
    for (const { succeed } of attempts) succeed();
  }

  /** What a commit left for the next one; it comes before what was added meanwhile. */
  function putBack(works: Pending[], durability: Durability): void {
    if (works.length === 0) return;
    if (pending.length === 0) scheduleCommit();
    pending = [...works, ...pending];
    if (durability === "full") pendingDurability = "full";
  }

  function scheduleCommit(): void {
    const delayMs = pace.delayMs();
    if (delayMs === 0) setImmediate(commitPending);
    else setTimeout(commitPending, delayMs);
  }

  return {
    db: drizzle(sqlite),
    sqlite,
    transaction,
    afterCommit(then, otherwise = () => {}) {
      if (sqlite.inTransaction && !reading) consequences.push({ then, otherwise });
      else then();
    },
    commitSoon(work, durability) {
      if (closed) return Promise.reject(new Error("the database is closed"));
      if (durability === "full") pendingDurability = "full";
      if (pending.length === 0) scheduleCommit();
      const { promise, resolve, reject } = Promise.withResolvers<ReturnType<typeof work>>();
      pending.push({ work, resolve: resolve as (result: unknown) => void, reject });
      return promise;
    },
    readTogether,
    close() {
      if (closed) return;
      while (pending.length > 0) commitPending();
      endReads();
      closed = true;
      try {
        sqlite.run("PRAGMA optimize");
      } catch {
        // Statistics for the planner; a full disk may refuse them, and must not keep the appliance from ending well.
      }
      sqlite.close();
    },
  };
}

/** Last first: each finds things as it left them. */
const undoAll = (made: Consequence[]): void => runAll(made.reverse().map(({ otherwise }) => otherwise));

/** Runs every one of them, then throws what the first that failed has thrown. */
function runAll(steps: (() => void)[]): void {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      step();
    } catch (failure) {
      failures.push(failure);
    }
  }
  if (failures.length > 0) throw failures[0];
}
