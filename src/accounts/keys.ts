import { createHash, randomBytes } from "node:crypto";
import { and, count, desc, eq, gt, inArray, isNull, lt, lte, notInArray, or, sql } from "drizzle-orm";
import { AppError, notFound } from "../lib/app-error.ts";
import { base62 } from "../lib/base62.ts";
import type { Clock } from "../lib/clock.ts";
import { createFairCache } from "../lib/fair-cache.ts";
import { isId, newId } from "../lib/id.ts";
import { lazily } from "../lib/lazily.ts";
import { MAX_KEYS, refuseOverQuota } from "../limits/account-limits.ts";
import type { Audit } from "../storage/audit.ts";
import type { Store } from "../storage/store.ts";
import { SCOPES, type Scope } from "./caller.ts";
import { type ApiKey, apiKeys } from "./table.ts";

const PREFIX = "rst_live_";
const TOUCH_EVERY_MS = 60_000;
/** Keys with their addresses that are remembered, of all accounts and of one. */
const MOST_PLACES = 10_000;
const MOST_PLACES_OF_ONE = 500;
/** An expired key is shown in the list for this long, so that its owner sees why a program stopped. */
const EXPIRED_KEPT_MS = 30 * 24 * 60 * 60 * 1000;
/** Of one account: making keys that end at once must not fill the disk. */
const EXPIRED_KEPT = 100;

export interface Keys {
  /**
   * The key itself is in this answer and nowhere else, ever. Throws `invalid_request` for an `expiresAt` in the past, and
   * `conflict` beyond the account's quota of keys that have not expired.
   */
  create(accountId: string, input: NewKey): { key: string; record: ApiKey };
  /** The record of a key that works now, else null. */
  verify(key: string): ApiKey | null;
  /** Whether this key is there and has not expired, as the database says now. */
  works(keyId: string): boolean;
  /**
   * Notes a use and the address it came from, at most once a minute for each: of reads the first in a minute, of
   * everything else each. An address that is new to the key goes into the audit log.
   */
  touch(record: ApiKey, address: () => string, isRead: boolean): void;
  list(accountId: string, before: string | null, limit: number): ApiKey[];
  /** Throws `not_found`. */
  revoke(accountId: string, keyId: string): void;
  /** Removes at most `limit` keys that expired 30 days ago. True when there may be more. */
  prune(limit: number): boolean;
}

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
  const endOf = lazily(() =>
    db
      .select({ expiresAt: apiKeys.expiresAt })
      .from(apiKeys)
      .where(eq(apiKeys.keyId, sql.placeholder("keyId")))
      .prepare(),
  );
  const hasEnded = (expiresAt: number | null) => expiresAt !== null && expiresAt <= clock.now();
  /** When each key was last used by a read, and by anything from each address. */
  const readAt = createFairCache<number>(MOST_PLACES, MOST_PLACES_OF_ONE);
  const usedAt = createFairCache<number>(MOST_PLACES, MOST_PLACES_OF_ONE);

  function makeRoom(accountId: string): void {
    const now = clock.now();
    const own = eq(apiKeys.accountId, accountId);
    const working = or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, now));
    const { used } = db.select({ used: count() }).from(apiKeys).where(and(own, working)).get() ?? { used: 0 };
    refuseOverQuota("API keys", "an account", used + 1, MAX_KEYS);
    const expired = and(own, lte(apiKeys.expiresAt, now));
    const newest = db
      .select({ keyId: apiKeys.keyId })
      .from(apiKeys)
      .where(expired)
      .orderBy(desc(apiKeys.expiresAt))
      .limit(EXPIRED_KEPT);
    db.delete(apiKeys)
      .where(and(expired, notInArray(apiKeys.keyId, newest)))
      .run();
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
        makeRoom(accountId);
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
      return record && !hasEnded(record.expiresAt) ? record : null;
    },
    works(keyId) {
      const record = endOf().get({ keyId });
      return record !== undefined && !hasEnded(record.expiresAt);
    },
    touch(record, address, isRead) {
      const now = clock.now();
      // A socket's address costs as much as the rest of a read, so reads ask for it once a minute.
      if (isRead && now - (readAt.get(record.keyId) ?? 0) < TOUCH_EVERY_MS) return;
      readAt.set(record.accountId, record.keyId, now);
      const from = address();
      const place = `${record.keyId} ${from}`;
      const last = usedAt.get(place);
      if (last !== undefined && now - last < TOUCH_EVERY_MS) return;
      usedAt.set(record.accountId, place, now);
      const isNew = last === undefined && record.lastAddress !== from;
      store
        .commitSoon(() => {
          const used = { lastUsedAt: now, lastAddress: from };
          db.update(apiKeys).set(used).where(eq(apiKeys.keyId, record.keyId)).run();
          if (!isNew) return;
          const actor = record.accountId;
          audit.append({ actor, action: "key.new_address", subject: record.keyId, detail: { address: from } });
        }, "process")
        // A use that could not be noted (a full disk) must not fail the request that made it; the next one notes it.
        .catch(() => usedAt.delete(place));
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
      });
    },
    prune(limit) {
      return store.transaction(() => {
        const old = db
          .select({ keyId: apiKeys.keyId })
          .from(apiKeys)
          .where(lt(apiKeys.expiresAt, clock.now() - EXPIRED_KEPT_MS))
          .limit(limit);
        return (
          db.delete(apiKeys).where(inArray(apiKeys.keyId, old)).returning({ keyId: apiKeys.keyId }).all().length ===
          limit
        );
      });
    },
  };
}
