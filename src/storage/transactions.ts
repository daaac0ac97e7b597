import type { Database } from "bun:sqlite";

/**
 * The statements that open and close transactions, prepared once: parsing them would cost a message more than its rows.
 */
export interface Transactions {
  /** Runs `work` in one `BEGIN IMMEDIATE`; rolls back when it, or the commit, throws. */
  immediate<T>(work: () => T): T;
  /** Runs `work` in a savepoint of the open transaction. */
  savepoint<T>(work: () => T): T;
  beginReads(): void;
  endReads(): void;
}

export function prepareTransactions(sqlite: Database): Transactions {
  const begin = sqlite.prepare("BEGIN IMMEDIATE");
  const beginReads = sqlite.prepare("BEGIN");
  const commit = sqlite.prepare("COMMIT");
  const rollBack = sqlite.prepare("ROLLBACK");
  const save = sqlite.prepare("SAVEPOINT work");
  const release = sqlite.prepare("RELEASE work");
  const rollBackToSave = sqlite.prepare("ROLLBACK TO work");
  return {
    immediate(work) {
      begin.run();
      try {
        const result = work();
        commit.run();
        return result;
      } catch (error) {
        // On a full disk SQLite has rolled back by itself.
        if (sqlite.inTransaction) rollBack.run();
        throw error;
      }
    },
    savepoint(work) {
      save.run();
      try {
        const result = work();
        release.run();
        return result;
      } catch (error) {
        if (sqlite.inTransaction) {
          rollBackToSave.run();
          release.run();
        }
        throw error;
      }
    },
    beginReads: () => void beginReads.run(),
    endReads: () => void commit.run(),
  };
}
