import type { Clock } from "../lib/clock.ts";
import type { Store } from "../storage/store.ts";
import { createDataKeys } from "./data-keys.ts";
import { seal, unseal } from "./seal.ts";

export interface Sealed {
  dataKeyId: number;
  sealed: Buffer;
}

/** Seals what other rooms keep, with the keys of the secrets. */
export interface Vault {
  /** `about` says what it is, and whose: it opens as nothing else. Call it in the transaction that keeps the result. */
  seal(content: string, about: string): Sealed;
  /** Null if it was sealed under another master key, about something else, or was changed. */
  open(kept: Sealed, about: string): string | null;
}

const bound = (about: string, dataKeyId: number): string => `${about}|${dataKeyId}`;

export function createVault(store: Store, clock: Clock, masterKey: Buffer): Vault {
  const dataKeys = createDataKeys(store, clock, masterKey);
  return {
    seal(content, about) {
      const { dataKeyId, key } = dataKeys.current();
      return { dataKeyId, sealed: seal(key, Buffer.from(content), bound(about, dataKeyId)) };
    },
    open({ dataKeyId, sealed }, about) {
      const dataKey = dataKeys.open(dataKeyId);
      return (dataKey && unseal(dataKey.key, sealed, bound(about, dataKeyId)))?.toString() ?? null;
    },
  };
}
