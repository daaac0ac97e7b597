import { createHash, randomBytes } from "node:crypto";
import { and, desc, eq, lt, sql } from "drizzle-orm";
import { AppError, notFound } from "../lib/app-error.ts";
import { base62 } from "../lib/base62.ts";
import type { Clock } from "../lib/clock.ts";
import { isId, newId } from "../lib/id.ts";
import { lazily } from "../lib/lazily.ts";
import type { Audit } from "../storage/audit.ts";
import type { Store } from "../storage/store.ts";
import { SCOPES, type Scope } from "./caller.ts";
import { type ApiKey, apiKeys } from "./table.ts";

const PREFIX = "rst_live_";
const NOTED_EVERY_MS = 60_000;
/** Keys whose uses are remembered, and addresses of each: beyond it the oldest is forgotten, and told anew. */
const MOST_KEYS = 10_000;
const MOST_ADDRESSES = 100;

export interface Keys {
  /** The key itself is in this answer and nowhere else, ever. Throws `invalid_request` for an `expiresAt` in the past. */
  create(accountId: string, input: NewKey): { key: string; record: ApiKey };
  /** The record of a key that works now, else null. */
  verify(key: string): ApiKey | null;
  /**
   * Notes a use: its time at most once a minute; an address that is new to the key at once, in the audit log, on disk
   * when the promise resolves. Throws `rate_limited` for a new address where the account has filled the log: no key is
   * used from where it is not told.
   */
  touch(record: ApiKey, address: string): void | Promise<void>;
  list(accountId: string, before: string | null, limit: number): ApiKey[];
  /** Throws `not_found`. */
  revoke(accountId: string, keyId: string): void;
}

interface Uses {
  notedAt: number;
  /** In the order in which they came. */
  addresses: Set<string>;
}

const forgetOldest = <K>(known: Set<K> | Map<K, unknown>): void => {
  for (const oldest of known.keys()) if (known.delete(oldest)) return;
};

export interface NewKey {
  name: string | null;
  scopes: readonly Scope[];
  instanceId: string | null;
  expiresAt: number | null;
}

const hashOf = (key: string) => createHash("sha256").update(key).digest();
const checksum = (text: string) => base62(new Uint8Array(new Uint32Array([Bun.hash.crc32(text)]).buffer), 6);

/** `rst_live_` + 6 characters to know it by + 32 random bytes + CRC32, so that a typo costs no look-up (security.md). */
function makeKey(): { key: string; prefix: string } {
  const prefix = PREFIX + base62(randomBytes(4), 6).slice(-6);
  const body = prefix + base62(randomBytes(32), 43);
  return { key: body + checksum(body), prefix };
}

export const looksLikeKey = (text: string): boolean => text.startsWith(PREFIX);

const KEY_LENGTH = PREFIX.length + 6 + 43 + 6;

export function createKeys(store: Store, clock: Clock, audit: Audit): Keys {
  const { db } = store;
  const byHash = lazily(() =>
    db
      .select()
      .from(apiKeys)
      .where(eq(apiKeys.keyHash, sql.placeholder("keyHash")))
      .prepare(),
  );
  const uses = new Map<string, Uses>();

  /** What is remembered of a key's uses: since the start, and the last address before it. */
  function usesOf({ keyId, lastAddress }: ApiKey): Uses {
    const known = uses.get(keyId);
    if (known) return known;
    const fresh: Uses = { notedAt: 0, addresses: new Set(lastAddress === null ? [] : [lastAddress]) };
    if (uses.size >= MOST_KEYS) forgetOldest(uses);
    uses.set(keyId, fresh);
    return fresh;
  }

  return {
    create(accountId, { name, scopes, instanceId, expiresAt }) {
      if (expiresAt !== null && expiresAt <= clock.now()) {
        throw new AppError("invalid_request", "expiresAt: expected a time in the future");
      }
      const { key, prefix } = makeKey();
      const keyId = newId("key");
      const ordered = SCOPES.filter((scope) => scopes.includes(scope)).join(" ");
      return store.transaction(() => {
        const record = db
          .insert(apiKeys)
          .values({
            keyId,
            accountId,
            name,
            prefix,
            keyHash: hashOf(key),
            scopes: ordered,
            instanceId,
            expiresAt,
            createdAt: clock.now(),
          })
          .returning()
          .get();
        audit.append({
          actor: accountId,
          action: "key.create",
          subject: keyId,
          detail: { scopes: ordered, instanceId },
        });
        return { key, record };
      });
    },
    verify(key) {
      if (key.length !== KEY_LENGTH || checksum(key.slice(0, -6)) !== key.slice(-6)) return null;
      const record = byHash().get({ keyHash: hashOf(key) });
      if (!record || (record.expiresAt !== null && record.expiresAt <= clock.now())) return null;
      return record;
    },
    touch(record, address) {
      const now = clock.now();
      const used = usesOf(record);
      const { keyId, accountId: actor } = record;
      const isNew = !used.addresses.has(address);
      if (!isNew && now - used.notedAt < NOTED_EVERY_MS) return;
      const tell = isNew
        ? audit.reserve({ actor, action: "key.new_address", subject: keyId, detail: { address } })
        : () => {};
      if (used.addresses.size >= MOST_ADDRESSES) forgetOldest(used.addresses);
      used.addresses.add(address);
      used.notedAt = now;
      const noted = store
        .commitSoon(
          () => {
            db.update(apiKeys).set({ lastUsedAt: now, lastAddress: address }).where(eq(apiKeys.keyId, keyId)).run();
            tell();
          },
          isNew ? "full" : "process",
        )
        // A use that could not be noted (a full disk) must not fail the request that made it; the next one notes it.
        .catch(() => {
          used.notedAt = 0;
          if (isNew) used.addresses.delete(address);
        });
      return isNew ? noted : undefined;
    },
    list: (accountId, before, limit) =>
      db
        .select()
        .from(apiKeys)
        .where(and(eq(apiKeys.accountId, accountId), before === null ? undefined : lt(apiKeys.keyId, before)))
        .orderBy(desc(apiKeys.keyId))
        .limit(limit)
        .all(),
    revoke(accountId, keyId) {
      if (!isId("key", keyId)) throw notFound("key");
      store.transaction(() => {
        const gone = db
          .delete(apiKeys)
          .where(and(eq(apiKeys.keyId, keyId), eq(apiKeys.accountId, accountId)))
          .returning()
          .get();
        if (!gone) throw notFound("key");
        audit.append({ actor: accountId, action: "key.revoke", subject: keyId });
        store.afterCommit(() => uses.delete(keyId));
      });
    },
  };
}
