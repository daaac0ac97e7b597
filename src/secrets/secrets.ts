import { notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { refuseOverQuota } from "../limits/account-limits.ts";
import type { Audit } from "../storage/audit.ts";
import type { Store } from "../storage/store.ts";
import { createDataKeys } from "./data-keys.ts";
import { secretQueries } from "./queries.ts";
import type { Secret, SecretName } from "./schema.ts";
import { SEAL_BYTES, seal, unseal } from "./seal.ts";

/** Secrets of one instance (docs/contract/api.md, Skills). */
export const MAX_SECRETS = 100;
/** Of their values: all of them are looked for in whatever the instance's agents are told. */
export const MAX_SECRET_BYTES = 512 * 1024;

export interface SecretParts {
  store: Store;
  clock: Clock;
  audit: Audit;
  /** 32 bytes: see master-key.ts. */
  masterKey: Buffer;
  /** Whose agents use what is read. */
  accountOf(instanceId: string): string;
  /** What else is to be found in an instance's texts, by what it is: credentials that other rooms keep. */
  alsoHidden?(instanceId: string): ReadonlyMap<string, string>;
}

/** An instance's secrets. The caller must have checked access to the instance. */
export interface Secrets {
  /** Stores all or none, replacing existing values. Throws `conflict` beyond what an instance may have. */
  set(accountId: string, instanceId: string, values: ReadonlyMap<string, string>): void;
  /** By name, ascending, after `after`. */
  list(instanceId: string, after: string | null, limit: number): SecretName[];
  /** All names, sorted. */
  names(instanceId: string): string[];
  /** Throws `not_found`. */
  remove(accountId: string, instanceId: string, key: string): void;
  /**
   * The value, or undefined; reads are audited, up to the account's allowance. Only for the host, which fills it into
   * outgoing requests. Throws if it cannot be decrypted: the master key is another one, or the row was changed.
   */
  read(instanceId: string, key: string): string | undefined;
  /** All values that can be read, by name, to be looked for in what comes back. Not audited: they go nowhere. */
  values(instanceId: string): Map<string, string>;
  /** Another one whenever `values` may have changed; null if there are none. */
  version(instanceId: string): string | null;
  /** When the secret was stored last; undefined if there is none. */
  changedAt(instanceId: string, key: string): number | undefined;
  /** How many cannot be read because they were stored with another master key. */
  countLocked(): number;
}

const about = (instanceId: string, key: string, dataKeyId: number): string => `${instanceId}|${key}|${dataKeyId}`;

export function createSecrets({ store, clock, audit, masterKey, accountOf, alsoHidden }: SecretParts): Secrets {
  const queries = secretQueries(store.db);
  const dataKeys = createDataKeys(store, clock, masterKey);

  function open({ instanceId, key, dataKeyId, sealed }: Secret): Buffer {
    const dataKey = dataKeys.open(dataKeyId);
    const what = `the secret ${key} of ${instanceId}`;
    if (!dataKey) {
      throw new Error(`${what} was stored with another master key; restore that key, or store the secret again`);
    }
    const value = unseal(dataKey.key, sealed, about(instanceId, key, dataKeyId));
    if (!value) throw new Error(`${what} was changed in the database; store it again`);
    return value;
  }

  function bytesOf(instanceId: string): number {
    const { bytes, count } = queries.size(instanceId);
    return bytes - count * SEAL_BYTES;
  }

  return {
    set(accountId, instanceId, values) {
      store.transaction(() => {
        const { dataKeyId, key: dataKey } = dataKeys.current();
        const now = clock.now();
        const before = bytesOf(instanceId);
        for (const [key, value] of values) {
          const sealed = seal(dataKey, Buffer.from(value), about(instanceId, key, dataKeyId));
          queries.put({ instanceId, key, dataKeyId, sealed, now });
        }
        refuseOverQuota("secrets", "an instance", queries.size(instanceId).count, MAX_SECRETS);
        const after = bytesOf(instanceId);
        // Earlier builds had no such bound: what an instance has goes on working, and may become less.
        if (after > before) refuseOverQuota("bytes of secrets", "an instance", after, MAX_SECRET_BYTES);
        const keys = [...values.keys()].join(" ");
        audit.append({ actor: accountId, action: "secret.set", subject: instanceId, detail: { keys } });
      });
    },
    list: (instanceId, after, limit) => queries.page(instanceId, after ?? "", limit),
    names: (instanceId) => queries.page(instanceId, "", MAX_SECRETS).map(({ key }) => key),
    remove(accountId, instanceId, key) {
      store.transaction(() => {
        if (!queries.remove(instanceId, key)) throw notFound("secret");
        audit.append({ actor: accountId, action: "secret.delete", subject: instanceId, detail: { key } });
      });
    },
    read(instanceId, key) {
      const secret = queries.find(instanceId, key);
      if (!secret) return undefined;
      const value = open(secret).toString();
      audit.append({ actor: accountOf(instanceId), action: "secret.use", subject: instanceId, detail: { key } });
      return value;
    },
    values(instanceId) {
      const values = new Map(alsoHidden?.(instanceId));
      for (const secret of queries.all(instanceId)) {
        const dataKey = dataKeys.open(secret.dataKeyId);
        const value = dataKey && unseal(dataKey.key, secret.sealed, about(instanceId, secret.key, secret.dataKeyId));
        if (value) values.set(secret.key, value.toString());
      }
      return values;
    },
    version(instanceId) {
      const [own, other] = [queries.versions(instanceId), [...(alsoHidden?.(instanceId) ?? [])]];
      return own.length + other.length === 0 ? null : Bun.hash(JSON.stringify([own, other])).toString(36);
    },
    changedAt: (instanceId, key) => queries.find(instanceId, key)?.updatedAt,
    countLocked() {
      const locked = queries.countByDataKey().filter(({ dataKeyId }) => dataKeys.open(dataKeyId) === null);
      return locked.reduce((sum, group) => sum + group.secrets, 0);
    },
  };
}
