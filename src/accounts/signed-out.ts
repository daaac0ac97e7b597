import { asc, gt, inArray, lte } from "drizzle-orm";
import type { Clock } from "../lib/clock.ts";
import type { Store } from "../storage/store.ts";
import { signedOutTokens } from "./schema.ts";

/** The tokens that were signed out before their end. Asked at every request, so all of them are in memory too. */
export interface SignedOut {
  has(tokenId: string): boolean;
  /** Call it in a transaction: from its commit on, the token is refused. `expiresAt` is the token's own end. */
  add(tokenId: string, expiresAt: number): void;
  /** Forgets at most `limit` of those that have ended by themselves. True when there may be more. */
  prune(limit: number): boolean;
}

/** As many as there are tokens at most, each until its own end: a day. */
export function createSignedOut(store: Store, clock: Clock): SignedOut {
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
