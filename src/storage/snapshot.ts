import type { Database } from "bun:sqlite";
import type { Transactions } from "./transactions.ts";

/** A snapshot of the database that the reads of one turn of the event loop share. */
export interface Snapshot {
  /** Opens it until the end of this turn, unless a transaction is open. */
  begin(): void;
  end(): void;
  /** While it is open, SQLite is in a transaction, but nobody may write in it. */
  isOpen(): boolean;
  /**
   * Makes a read that asks the database once for each key while a snapshot is open, since nothing changes in it. The
   * value must not be changed by who gets it.
   */
  oncePerSnapshot<Value>(read: (key: string) => Value): (key: string) => Value;
}

export function createSnapshot(sqlite: Database, transactions: Transactions): Snapshot {
  const changes = sqlite.prepare<{ total: number }, []>("SELECT total_changes() AS total");
  const totalChanges = () => changes.get()?.total ?? 0;
  let isOpen = false;
  let changesBefore = 0;
  /** What the reads returned that ask once. */
  const known: Map<string, unknown>[] = [];

  function end(): void {
    if (!isOpen) return;
    isOpen = false;
    for (const values of known) values.clear();
    transactions.endReads();
    // A write among the reads would be acknowledged before it is committed. Checked in tests only.
    if (process.env.NODE_ENV !== "production" && totalChanges() !== changesBefore) {
      throw new Error("something was written outside of a transaction");
    }
  }

  return {
    begin() {
      if (sqlite.inTransaction) return;
      if (process.env.NODE_ENV !== "production") changesBefore = totalChanges();
      transactions.beginReads();
      isOpen = true;
      setImmediate(end);
    },
    end,
    isOpen: () => isOpen,
    oncePerSnapshot<Value>(read: (key: string) => Value) {
      const values = new Map<string, Value>();
      known.push(values);
      return (key) => {
        if (!isOpen) return read(key);
        const found = values.get(key);
        if (found !== undefined) return found;
        const value = read(key);
        values.set(key, value);
        return value;
      };
    },
  };
}
