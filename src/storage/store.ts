import { Database } from "bun:sqlite";
import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
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
  /** Runs `then` after the transaction that is open has committed, never if it rolls back; at once where none is open. */
  afterCommit(then: () => void): void;
  /**
   * Adds `work` to the commit at the end of this turn of the event loop: thousands of small writes cost one commit.
   * Each work stands or falls alone, in the order they were added; `durability` of the whole commit is the strictest
   * that was asked for. Resolves with the work's result when that is on disk.
   */
  commitSoon<T>(work: () => T, durability: Durability): Promise<T>;
  close(): void;
}

interface Pending {
  work: () => unknown;
  resolve: (result: unknown) => void;
  reject: (reason: unknown) => void;
}

/** Opens (and creates, checks, migrates) `<data>/roost.db`. Throws with the mend when the file is damaged. */
export function openStore(dataDir: string): Store {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, "roost.db");
  const sqlite = new Database(path, { create: true, strict: true });
  try {
    chmodSync(path, 0o600);
    prepareConnection(sqlite);
    quickCheck(sqlite, path);
    migrate(sqlite, dataDir);
  } catch (error) {
    sqlite.close();
    throw error;
  }
  return createStore(sqlite);
}

function prepareConnection(sqlite: Database): void {
  sqlite.run("PRAGMA busy_timeout = 5000");
  sqlite.run("PRAGMA journal_mode = WAL");
  sqlite.run("PRAGMA foreign_keys = ON");
  sqlite.run("PRAGMA synchronous = FULL");
  sqlite.run("PRAGMA cache_size = -8000");
  sqlite.run("PRAGMA journal_size_limit = 67108864");
}

function quickCheck(sqlite: Database, path: string): void {
  let finding: string;
  try {
    finding = sqlite.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get()?.quick_check ?? "no answer";
  } catch (cause) {
    finding = cause instanceof Error ? cause.message : String(cause);
  }
  if (finding === "ok") return;
  throw new Error(`the database ${path} is damaged (${finding}); restore the latest backup: roost backup restore FILE`);
}

function createStore(sqlite: Database): Store {
  let afterCommit: (() => void)[] = [];
  let pending: Pending[] = [];
  let pendingDurability: Durability = "process";

  const immediate = sqlite.transaction((work: () => unknown) => work()).immediate;

  function settle(committed: boolean): void {
    const then = afterCommit;
    afterCommit = [];
    if (committed) for (const run of then) run();
  }

  /** A savepoint: what was to follow its commit is forgotten with it. */
  function nested<T>(work: () => T): T {
    const kept = afterCommit.length;
    try {
      return sqlite.transaction(work)();
    } catch (error) {
      afterCommit.length = kept;
      throw error;
    }
  }

  function transaction<T>(work: () => T): T {
    if (sqlite.inTransaction) return nested(work);
    let committed = false;
    try {
      const result = immediate(work) as T;
      committed = true;
      return result;
    } finally {
      settle(committed);
    }
  }

  function commitPending(): void {
    const works = pending;
    const durability = pendingDurability;
    pending = [];
    pendingDurability = "process";
    let settlers: (() => void)[] = [];
    if (durability === "process") sqlite.run("PRAGMA synchronous = NORMAL");
    try {
      transaction(() => {
        for (const { work, resolve, reject } of works) {
          try {
            const result = nested(work);
            settlers.push(() => resolve(result));
          } catch (reason) {
            settlers.push(() => reject(reason));
          }
        }
      });
    } catch (reason) {
      settlers = works.map(
        ({ reject }) =>
          () =>
            reject(reason),
      );
    } finally {
      if (durability === "process") sqlite.run("PRAGMA synchronous = FULL");
    }
    for (const settle of settlers) settle();
  }

  return {
    db: drizzle(sqlite),
    sqlite,
    transaction,
    afterCommit(then) {
      if (sqlite.inTransaction) afterCommit.push(then);
      else then();
    },
    commitSoon(work, durability) {
      if (durability === "full") pendingDurability = "full";
      if (pending.length === 0) setImmediate(commitPending);
      const { promise, resolve, reject } = Promise.withResolvers<ReturnType<typeof work>>();
      pending.push({ work, resolve: resolve as (result: unknown) => void, reject });
      return promise;
    },
    close() {
      if (pending.length > 0) commitPending();
      sqlite.run("PRAGMA optimize");
      sqlite.close();
    },
  };
}
