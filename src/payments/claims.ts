import { and, asc, count, eq, gt, lte, or, sql } from "drizzle-orm";
import { NETWORK_NAMES, NETWORKS, type NetworkName } from "../chain/networks.ts";
import type { Clock } from "../lib/clock.ts";
import { lazily } from "../lib/lazily.ts";
import type { Micros } from "../lib/money.ts";
import type { Store } from "../storage/store.ts";
import type { Proof } from "./proof.ts";
import { type Claim, claims } from "./schema.ts";

const FIRST_RETRY_MS = 5_000;
const MAX_RETRY_MS = 60_000;
const LIFE_MS = 24 * 60 * 60 * 1000;
const MAX_PENDING = 20;
const KEEP_MS = 30 * LIFE_MS;
const NAMES = new Map<number, NetworkName>(NETWORK_NAMES.map((name) => [NETWORKS[name].chainId, name]));

/** What a facilitator says it settled. */
export interface Settled {
  accountId: string;
  payer: string;
  amount: Micros;
}

export interface Claims {
  find(proof: Proof): Claim | undefined;
  /**
   * Stores an undecided proof, to be checked again and credited when possible. An account may have 20 of them; further
   * ones must be presented again: false.
   */
  keep(accountId: string, proof: Proof, reason: string): boolean;
  /** Stores what a facilitator settled; false while its transaction is pending for another payer or account. */
  keepSettled(proof: Proof, settled: Settled): boolean;
  /** Stores, for the operator, a proof that was refused although it brought USDC; of several accounts, the last one's. */
  keepRefused(accountId: string, proof: Proof, reason: string): void;
  /** Decides a pending claim; `reason` explains a refusal. */
  decide(proof: Proof, status: "credited" | "refused", reason: string | null): void;
  /** What was refused is credited now. */
  settle(proof: Proof): void;
  /** Schedules the next try, in case this one decides nothing. */
  postpone(claim: Claim): void;
  /** Expires claims that are undecided after a day. */
  expire(): void;
  due(limit: number): { proof: Proof; claim: Claim }[];
  countByStatus(): Record<Claim["status"], number>;
  /** Removes at most `limit` claims that were decided long ago. Returns whether there may be more. */
  prune(limit: number): boolean;
}

/** Transactions presented as payments. They are checked until decided, also after a restart. */
export function createClaims(store: Store, clock: Clock): Claims {
  const { db } = store;
  const isOf = ({ network, txHash }: Proof) =>
    and(eq(claims.chainId, NETWORKS[network].chainId), eq(claims.txHash, txHash));
  const isPending = eq(claims.status, "pending");
  /** Prepared once: whatever is presented is looked up. */
  const ofTransaction = lazily(() =>
    db
      .select()
      .from(claims)
      .where(and(eq(claims.chainId, sql.placeholder("chainId")), eq(claims.txHash, sql.placeholder("txHash"))))
      .prepare(),
  );
  const find = ({ network, txHash }: Proof) => ofTransaction().get({ chainId: NETWORKS[network].chainId, txHash });
  const fresh = () => {
    const now = clock.now();
    return { status: "pending" as const, tries: 0, nextTryAt: now + FIRST_RETRY_MS, createdAt: now };
  };

  function countPending(accountId: string): number {
    const own = and(eq(claims.accountId, accountId), isPending);
    return db.select({ count: count() }).from(claims).where(own).get()?.count ?? 0;
  }

  return {
    find,
    keep(accountId, proof, reason) {
      const known = find(proof);
      if (known?.status === "pending") return true;
      if (countPending(accountId) >= MAX_PENDING) return false;
      store.transaction(() => {
        const { network, txHash } = proof;
        // What a facilitator settled remains its account's claim.
        const again = { ...fresh(), reason, accountId: known?.payer ? known.accountId : accountId };
        db.insert(claims)
          .values({ chainId: NETWORKS[network].chainId, txHash, ...again })
          .onConflictDoUpdate({ target: [claims.chainId, claims.txHash], set: again })
          .run();
      });
      return true;
    },
    keepSettled(proof, settled) {
      const known = find(proof);
      if (known?.status === "pending" && known.payer !== null) {
        return known.accountId === settled.accountId && known.payer.toLowerCase() === settled.payer.toLowerCase();
      }
      // A decided claim is replaced: one transaction may settle several signatures.
      store.transaction(() => {
        const { network, txHash } = proof;
        db.insert(claims)
          .values({ chainId: NETWORKS[network].chainId, txHash, ...fresh(), ...settled })
          .onConflictDoUpdate({ target: [claims.chainId, claims.txHash], set: { ...fresh(), ...settled } })
          .run();
      });
      return true;
    },
    keepRefused(accountId, proof, reason) {
      const known = find(proof);
      if (known?.status === "refused" && known.accountId === accountId && known.reason === reason) return;
      const { network, txHash } = proof;
      const refused = { ...fresh(), status: "refused" as const, accountId, reason };
      store.transaction(() =>
        db
          .insert(claims)
          .values({ chainId: NETWORKS[network].chainId, txHash, ...refused })
          .onConflictDoUpdate({
            target: [claims.chainId, claims.txHash],
            set: refused,
            // What a facilitator settled remains its account's claim.
            setWhere: sql`${claims.status} IN ('refused', 'expired') AND ${claims.payer} IS NULL`,
          })
          .run(),
      );
    },
    decide(proof, status, reason) {
      db.update(claims)
        .set({ status, reason })
        .where(and(isOf(proof), isPending))
        .run();
    },
    settle(proof) {
      db.update(claims)
        .set({ status: "credited", reason: null })
        .where(and(isOf(proof), sql`${claims.status} <> 'pending'`))
        .run();
    },
    postpone({ chainId, txHash, tries }) {
      const delayMs = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(tries, 10));
      store.transaction(() =>
        db
          .update(claims)
          .set({ tries: tries + 1, nextTryAt: clock.now() + delayMs })
          .where(and(eq(claims.chainId, chainId), eq(claims.txHash, txHash), isPending))
          .run(),
      );
    },
    expire() {
      const isExpired = and(isPending, lte(claims.createdAt, clock.now() - LIFE_MS));
      store.transaction(() => db.update(claims).set({ status: "expired" }).where(isExpired).run());
    },
    due(limit) {
      const now = clock.now();
      // A time far ahead is due too: the wall clock has been set back since.
      const isDue = or(lte(claims.nextTryAt, now), gt(claims.nextTryAt, now + MAX_RETRY_MS));
      return db
        .select()
        .from(claims)
        .where(and(isPending, isDue))
        .orderBy(asc(claims.nextTryAt))
        .limit(limit)
        .all()
        .flatMap((claim) => {
          const network = NAMES.get(claim.chainId);
          return network ? [{ proof: { network, txHash: claim.txHash }, claim }] : [];
        });
    },
    countByStatus: () => ({
      pending: 0,
      credited: 0,
      refused: 0,
      expired: 0,
      ...Object.fromEntries(
        db
          .select({ status: claims.status, count: count() })
          .from(claims)
          .groupBy(claims.status)
          .all()
          .map((row) => [row.status, row.count]),
      ),
    }),
    prune(limit) {
      return store.transaction(() => {
        const old = db
          .select({ chainId: claims.chainId, txHash: claims.txHash })
          .from(claims)
          // In the words of the partial index.
          .where(and(sql`${claims.status} <> 'pending'`, lte(claims.createdAt, clock.now() - KEEP_MS)))
          .orderBy(asc(claims.createdAt))
          .limit(limit)
          .all();
        for (const { chainId, txHash } of old) {
          db.delete(claims)
            .where(and(eq(claims.chainId, chainId), eq(claims.txHash, txHash)))
            .run();
        }
        return old.length === limit;
      });
    },
  };
}
