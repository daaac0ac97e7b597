import { randomBytes } from "node:crypto";
import type { Clock } from "../lib/clock.ts";
import type { Store } from "../storage/store.ts";
import { dataKeyQueries } from "./queries.ts";
import type { DataKeyRow } from "./schema.ts";
import { KEY_BYTES, seal, unseal } from "./seal.ts";

export interface DataKey {
  dataKeyId: number;
  key: Buffer;
}

export interface DataKeys {
  /** The newest data key that the master key unwraps, or a new one. Call it in the transaction that uses it. */
  current(): DataKey;
  /** Null if it was wrapped by another master key. */
  open(dataKeyId: number): DataKey | null;
}

/**
 * The keys that seal the secrets, each wrapped by the master key: one for every master key that the host has had. They are
 * unwrapped at each use, which takes microseconds.
 */
export function createDataKeys(store: Store, clock: Clock, masterKey: Buffer): DataKeys {
  const queries = dataKeyQueries(store.db);
  const about = (dataKeyId: number) => `data key|${dataKeyId}`;

  function unwrap({ dataKeyId, wrapped }: DataKeyRow): DataKey | null {
    const key = unseal(masterKey, wrapped, about(dataKeyId));
    return key && { dataKeyId, key };
  }

  function create(): DataKey {
    return store.transaction(() => {
      const dataKeyId = (queries.newestFirst()[0]?.dataKeyId ?? 0) + 1;
      const key = randomBytes(KEY_BYTES);
      queries.add({ dataKeyId, wrapped: seal(masterKey, key, about(dataKeyId)), createdAt: clock.now() });
      return { dataKeyId, key };
    });
  }

  return {
    current() {
      for (const row of queries.newestFirst()) {
        const opened = unwrap(row);
        if (opened) return opened;
      }
      return create();
    },
    open(dataKeyId) {
      const row = queries.find(dataKeyId);
      return row ? unwrap(row) : null;
    },
  };
}
