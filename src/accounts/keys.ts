import { createHash, randomBytes } from "node:crypto";
import { and, count, desc, eq, gt, inArray, isNull, lt, lte, notInArray, or, sql } from "drizzle-orm";
import { AppError, notFound } from "../lib/app-error.ts";
import { base62 } from "../lib/base62.ts";
import type { Clock } from "../lib/clock.ts";
import { createFairCache } from "../lib/fair-cache.ts";
import { isId, newId } from "../lib/id.ts";
import { MAX_KEYS, refuseOverQuota } from "../limits/account-limits.ts";
import { addressKey } from "../limits/address.ts";
import { SCOPES, type Scope } from "../limits/caller.ts";
import type { Audit } from "../storage/audit.ts";
import { prepared } from "../storage/prepared.ts";
import type { Store } from "../storage/store.ts";
import { type ApiKey, apiKeys } from "./schema.ts";

const PREFIX = "rst_live_";
const RECORD_EVERY_MS = 60_000;
/**
 * How many keys' uses are cached, in total and per account, and how many addresses of each; beyond that a use is
 * recorded again.
 */
const MAX_CACHED = 10_000;
const MAX_CACHED_PER_ACCOUNT = 500;
const MAX_ADDRESSES = 100;
/** An expired key stays in the list for this long, so that its owner sees why a program stopped. */
const KEEP_EXPIRED_MS = 30 * 24 * 60 * 60 * 1000;
/** Per account: creating short-lived keys must not fill the disk. */
const MAX_EXPIRED = 100;

export interface Keys {
  /**
   * Only this answer ever contains the key itself. Throws `invalid_request` for an `expiresAt` in the past, and
   * `conflict` beyond the account's quota of unexpired keys.
   */
  create(accountId: string, input: NewKey): { key: string; record: ApiKey };
  /** The record of a valid key, or null. */
  verify(key: string): ApiKey | null;
  /** Whether this key exists and has not expired, according to the database. */
  works(keyId: string): boolean;
  /**
   * Records a use: its time at most once a minute, and an address new to the key at once, in the audit log, on disk
   * when the promise resolves, unless the disk fails: then the next use records it. Throws `rate_limited` for a new
   * address if the account has used up its allowance of the log.
   */
  touch(record: ApiKey, address: string): void | Promise<void>;
  list(accountId: string, before: string | null, limit: number): ApiKey[];
  /** Throws `not_found`. */
  revoke(accountId: string, keyId: string): void;
  /** Removes at most `limit` keys that expired long enough ago. Returns whether there may be more. */
  prune(limit: number): boolean;
}

interface Uses {
  notedAt: number;
  /** Oldest first. */
  addresses: Set<string>;
}

const forgetOldest = (known: Set<string>): void => {
  for (const oldest of known) if (known.delete(oldest)) return;
};

export interface NewKey {
  name: string | null;
  scopes: readonly Scope[];
  instanceId: string | null;
  expiresAt: number | null;
}

const hashOf = (key: string) => createHash("sha256").update(key).digest();
const checksum = (text: string) => base62(new Uint8Array(new Uint32Array([Bun.hash.crc32(text)]).buffer), 6);

/**
 * `rst_live_` + 6 characters that identify it + 32 random bytes + CRC32, so that a typo costs no look-up
 * (docs/contract/security.md, Credentials).
 */
function makeKey(): { key: string; prefix: string } {
  const prefix = PREFIX + base62(randomBytes(4), 6).slice(-6);
  const body = prefix + base62(randomBytes(32), 43);
  return { key: body + checksum(body), prefix };
}

export const looksLikeKey = (text: string): boolean => text.startsWith(PREFIX);

const KEY_LENGTH = PREFIX.length + 6 + 43 + 6;

/** `keepExpiredMs` is null to keep expired keys until there are too many of them. */
export function createKeys(
  store: Store,
  clock: Clock,
  audit: Audit,
  keepExpiredMs: number | null = KEEP_EXPIRED_MS,
): Keys {
  const { db } = store;
  const byHash = prepared(db, () =>
    db
      .select()
      .from(apiKeys)
      .where(eq(apiKeys.keyHash, sql.placeholder("keyHash"))),
  );
  const endOf = prepared(db, () =>
    db
      .select({ expiresAt: apiKeys.expiresAt })
      .from(apiKeys)
      .where(eq(apiKeys.keyId, sql.placeholder("keyId"))),
  );
  const byText = store.oncePerSnapshot((key) => {
    if (key.length !== KEY_LENGTH || checksum(key.slice(0, -6)) !== key.slice(-6)) return null;
    return byHash.get({ keyHash: hashOf(key) }) ?? null;
  });
  const hasEnded = (expiresAt: number | null) => expiresAt !== null && expiresAt <= clock.now();
  const uses = createFairCache<Uses>(MAX_CACHED, MAX_CACHED_PER_ACCOUNT);

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
      .limit(MAX_EXPIRED);
    db.delete(apiKeys)
      .where(and(expired, notInArray(apiKeys.keyId, newest)))
      .run();
  }

  /** The cached uses of a key: those since the start, and the last address before. */
  function usesOf({ keyId, accountId, lastAddress }: ApiKey): Uses {
    const known = uses.get(keyId);
    if (known) return known;
    const fresh: Uses = { notedAt: 0, addresses: new Set(lastAddress === null ? [] : [addressKey(lastAddress)]) };
    uses.set(accountId, keyId, fresh);
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
      const record = byText(key);
      return record && !hasEnded(record.expiresAt) ? record : null;
    },
    works(keyId) {
      const record = endOf.get({ keyId });
      return record !== undefined && !hasEnded(record.expiresAt);
    },
    touch(record, address) {
      const now = clock.now();
      const used = usesOf(record);
      const { keyId, accountId: actor } = record;
      const place = addressKey(address);
      const isNew = !used.addresses.has(place);
      if (!isNew && now - used.notedAt < RECORD_EVERY_MS) return;
      const tell = isNew
        ? audit.reserve({ actor, action: "key.new_address", subject: keyId, detail: { address } })
        : () => {};
      if (used.addresses.size >= MAX_ADDRESSES) forgetOldest(used.addresses);
      used.addresses.add(place);
      used.notedAt = now;
      const noted = store
        .commitSoon(
          () => {
            db.update(apiKeys).set({ lastUsedAt: now, lastAddress: address }).where(eq(apiKeys.keyId, keyId)).run();
            tell();
          },
          isNew ? "full" : "process",
        )
        // Failing to record a use (a full disk) must not fail the request; the next one records it.
        .catch(() => {
          used.notedAt = 0;
          if (isNew) used.addresses.delete(place);
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
    prune(limit) {
      if (keepExpiredMs === null) return false;
      return store.transaction(() => {
        const old = db
          .select({ keyId: apiKeys.keyId })
          .from(apiKeys)
          .where(lt(apiKeys.expiresAt, clock.now() - keepExpiredMs))
          .limit(limit);
        return (
          db.delete(apiKeys).where(inArray(apiKeys.keyId, old)).returning({ keyId: apiKeys.keyId }).all().length ===
          limit
        );
      });
    },
  };
}
