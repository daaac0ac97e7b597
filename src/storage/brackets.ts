import type { Database } from "bun:sqlite";

/** What may stand around work on the database, prepared once: a transaction costs a message more than most of its rows. */
export interface Brackets {
  /** `work` in one `BEGIN IMMEDIATE`; rolled back when it, or the commit, throws. */
  immediate<T>(work: () => T): T;
  /** `work` in a savepoint of the transaction that is open. */
  savepoint<T>(work: () => T): T;
  beginReads(): void;
  endReads(): void;
}

export function prepareBrackets(sqlite: Database): Brackets {
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
        // A full disk makes SQLite roll back by itself.
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
