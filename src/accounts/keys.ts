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
const TOUCH_EVERY_MS = 60_000;
/** Keys with their addresses that are remembered; beyond it the memory starts anew. */
const MOST_PLACES = 10_000;

export interface Keys {
  /** The key itself is in this answer and nowhere else, ever. Throws `invalid_request` for an `expiresAt` in the past. */
  create(accountId: string, input: NewKey): { key: string; record: ApiKey };
  /** The record of a key that works now, else null. */
  verify(key: string): ApiKey | null;
  /**
   * Notes a use and the address it came from, at most once a minute for each: of reads the first in a minute, of
   * everything else each. An address that is new to the key goes into the audit log.
   */
  touch(record: ApiKey, address: () => string, isRead: boolean): void;
  list(accountId: string, before: string | null, limit: number): ApiKey[];
  /** Throws `not_found`. */
  revoke(accountId: string, keyId: string): void;
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
  /** When each key was last used by a read, and by anything from each address. */
  const readAt = new Map<string, number>();
  const usedAt = new Map<string, number>();

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
    touch(record, address, isRead) {
      const now = clock.now();
      // A socket's address costs as much as the rest of a read, so reads ask for it once a minute.
      if (isRead && now - (readAt.get(record.keyId) ?? 0) < TOUCH_EVERY_MS) return;
      readAt.set(record.keyId, now);
      const from = address();
      const place = `${record.keyId} ${from}`;
      const last = usedAt.get(place);
      if (last !== undefined && now - last < TOUCH_EVERY_MS) return;
      if (usedAt.size >= MOST_PLACES) usedAt.clear();
      usedAt.set(place, now);
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
  };
}
