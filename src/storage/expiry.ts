import type { Store } from "./store.ts";

/** Rows that one commit closes: thousands may be due at once, and must not hold up requests. */
const AT_ONCE = 50;

export interface Expiry<Row> {
  store: Pick<Store, "commitSoon" | "sqlite" | "transaction">;
  /** At most `limit` of those that are due. */
  due: (limit: number) => Row[];
  idOf: (row: Row) => string;
  /** Closes one, so that it is due no longer. */
  expire: (row: Row) => void;
  /** Is told which could not be closed; they hold up no other, and are due at the next call again. */
  failed: (err: unknown, row: Row) => void;
}

/** Expires what is due, in slices, each row alone. */
export async function expireAll<Row>({ store, due, idOf, expire, failed }: Expiry<Row>): Promise<void> {
  const left = new Set<string>();
  const next = () => due(AT_ONCE + left.size).filter((row) => !left.has(idOf(row)));

  function slice(): void {
    for (const row of next()) {
      try {
        store.transaction(() => expire(row));
      } catch (err) {
        if (!store.sqlite.inTransaction) throw err;
        left.add(idOf(row));
        failed(err, row);
      }
    }
  }

  while (next().length > 0) await store.commitSoon(slice, "full");
}
