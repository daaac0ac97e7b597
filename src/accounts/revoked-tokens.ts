import { asc, gt, inArray, lte } from "drizzle-orm";
import type { Clock } from "../lib/clock.ts";
import type { Store } from "../storage/store.ts";
import { signedOutTokens } from "./schema.ts";

/** Tokens signed out before their expiry. Checked at every request, so all of them are kept in memory too. */
export interface RevokedTokens {
  has(tokenId: string): boolean;
  /** Call it in a transaction: from its commit on, the token is refused. `expiresAt` is the token's own expiry. */
  add(tokenId: string, expiresAt: number): void;
  /** Removes at most `limit` expired tokens. Returns whether there may be more. */
  prune(limit: number): boolean;
}

/** Bounded by the number of valid tokens: each is kept until its expiry, a day at most. */
export function createRevokedTokens(store: Store, clock: Clock): RevokedTokens {
  const { db } = store;
  const live = gt(signedOutTokens.expiresAt, clock.now());
  const ids = new Set(
    db
      .select()
      .from(signedOutTokens)
      .where(live)
      .all()
      .map(({ tokenId }) => tokenId),
  );
  return {
    has: (tokenId) => ids.has(tokenId),
    add(tokenId, expiresAt) {
      store.transaction(() => {
        db.insert(signedOutTokens).values({ tokenId, expiresAt }).onConflictDoNothing().run();
        store.afterCommit(() => ids.add(tokenId));
      });
    },
    prune(limit) {
      return store.transaction(() => {
        const ended = db
          .select({ tokenId: signedOutTokens.tokenId })
          .from(signedOutTokens)
          .where(lte(signedOutTokens.expiresAt, clock.now()))
          .orderBy(asc(signedOutTokens.expiresAt))
          .limit(limit)
          .all()
          .map(({ tokenId }) => tokenId);
        db.delete(signedOutTokens).where(inArray(signedOutTokens.tokenId, ended)).run();
        store.afterCommit(() => {
          for (const tokenId of ended) ids.delete(tokenId);
        });
        return ended.length === limit;
      });
    },
  };
}
