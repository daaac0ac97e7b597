import { and, asc, count, eq, gt, lte, type SQL, sql } from "drizzle-orm";
import { MAX_BLOCKS_SEARCHED } from "../../chain/find-authorization.ts";
import { NETWORK_NAMES, NETWORKS, type NetworkName } from "../../chain/networks.ts";
import type { Store } from "../../storage/store.ts";
import { type AuthorizationRow, authorizations, type PaymentRow } from "../schema.ts";

const KEPT_MS = 30 * 24 * 60 * 60 * 1000;
const NAMES = new Map<number, NetworkName>(NETWORK_NAMES.map((name) => [NETWORKS[name].chainId, name]));

/** Identifies a signed transfer (EIP-3009); payer and nonce in lower case. */
export interface AuthorizationId {
  network: NetworkName;
  payer: `0x${string}`;
  nonce: string;
}

export interface OpenAuthorization {
  id: AuthorizationId;
  createdAt: number;
}

type Status = AuthorizationRow["status"];

export interface Authorizations {
  find(id: AuthorizationId): AuthorizationRow | undefined;
  /** Stores one before it is passed on; it is on disk when this returns. */
  add(id: AuthorizationId, row: Omit<AuthorizationRow, "chainId" | "payer" | "nonce" | "status" | "txHash">): void;
  change(id: AuthorizationId, change: Partial<Pick<AuthorizationRow, "status" | "txHash" | "head">>): void;
  /**
   * The transfer that it settled was reversed: it is looked for again, in whatever transaction it arrives now, which may be
   * in an earlier block.
   */
  reopen(payment: PaymentRow): void;
  /** The same transfer was credited again. */
  close(payment: PaymentRow): void;
  /** Whether one of the account's may still be settling: a new payment might be a second one. */
  isSettling(accountId: string, now: number): boolean;
  /** Those that may still reach the chain, oldest first; after `after`, if it is given. */
  open(after: OpenAuthorization | null, limit: number): OpenAuthorization[];
  countByStatus(): Record<Status, number>;
  /** Removes at most `limit` decided long ago: the signatures have expired by then. Returns whether there may be more. */
  prune(now: number, limit: number): boolean;
}

interface Change {
  status: Status;
  head?: SQL;
}

/** Signed transfers passed to a facilitator; they survive a restart. */
export function createAuthorizations({ db, transaction }: Store): Authorizations {
  const isOf = ({ network, payer, nonce }: AuthorizationId) =>
    and(
      eq(authorizations.chainId, NETWORKS[network].chainId),
      eq(authorizations.payer, payer),
      eq(authorizations.nonce, nonce),
    );
  // Exactly the condition of the partial index, or SQLite would not use it.
  const isOpen = sql`${authorizations.status} IN ('settling', 'failed')`;
  const isClosed = sql`(${authorizations.status} = 'credited' OR ${authorizations.status} = 'lapsed')`;

  /** Changes one that the payment may have settled, if there is one: of several in its transaction, it may be any. */
  function changeOf({ chainId, payer, txHash, accountId, amount }: PaymentRow, from: Status, change: Change): void {
    const isOfPayment = and(
      eq(authorizations.chainId, chainId),
      eq(authorizations.payer, payer.toLowerCase()),
      eq(authorizations.txHash, txHash),
      eq(authorizations.accountId, accountId),
      eq(authorizations.amount, amount),
      eq(authorizations.status, from),
    );
    transaction(() => {
      const one = db.select({ nonce: authorizations.nonce }).from(authorizations).where(isOfPayment).limit(1).get();
      if (one === undefined) return;
      const { nonce } = one;
      db.update(authorizations)
        .set(change)
        .where(and(isOfPayment, eq(authorizations.nonce, nonce)))
        .run();
    });
  }

  return {
    find: (id) => db.select().from(authorizations).where(isOf(id)).get(),
    add({ network, payer, nonce }, row) {
      const values = { chainId: NETWORKS[network].chainId, payer, nonce, ...row, status: "settling" as const };
      transaction(() => db.insert(authorizations).values(values).run());
    },
    change(id, change) {
      transaction(() => db.update(authorizations).set(change).where(isOf(id)).run());
    },
    reopen(payment) {
      const head = sql`max(0, ${authorizations.head} - ${MAX_BLOCKS_SEARCHED / 2})`;
      changeOf(payment, "credited", { status: "settling", head });
    },
    close: (payment) => changeOf(payment, "settling", { status: "credited" }),
    isSettling(accountId, now) {
      const own = and(
        isOpen,
        eq(authorizations.accountId, accountId),
        eq(authorizations.status, "settling"),
        gt(authorizations.validBefore, now),
      );
      return db.select({ nonce: authorizations.nonce }).from(authorizations).where(own).limit(1).get() !== undefined;
    },
    countByStatus: () => ({
      settling: 0,
      failed: 0,
      credited: 0,
      lapsed: 0,
      ...Object.fromEntries(
        db
          .select({ status: authorizations.status, count: count() })
          .from(authorizations)
          .groupBy(authorizations.status)
          .all()
          .map((row) => [row.status, row.count]),
      ),
    }),
    prune(now, limit) {
      return transaction(() => {
        const { chainId, payer, nonce, createdAt } = authorizations;
        const old = db
          .select({ chainId, payer, nonce })
          .from(authorizations)
          .where(and(isClosed, lte(createdAt, now - KEPT_MS)))
          .orderBy(asc(createdAt))
          .limit(limit)
          .all();
        for (const row of old) {
          db.delete(authorizations)
            .where(and(eq(chainId, row.chainId), eq(payer, row.payer), eq(nonce, row.nonce)))
            .run();
        }
        return old.length === limit;
      });
    },
    open(after, limit) {
      const { chainId, payer, nonce, createdAt } = authorizations;
      const isAfter =
        after &&
        sql`(${createdAt}, ${chainId}, ${payer}, ${nonce})
          > (${after.createdAt}, ${NETWORKS[after.id.network].chainId}, ${after.id.payer}, ${after.id.nonce})`;
      const rows = db
        .select({ chainId, payer, nonce, createdAt })
        .from(authorizations)
        .where(and(isOpen, isAfter ?? undefined))
        .orderBy(asc(createdAt), asc(chainId), asc(payer), asc(nonce))
        .limit(limit)
        .all();
      return rows.flatMap((row) => {
        const network = NAMES.get(row.chainId);
        const id = network && { network, payer: row.payer as AuthorizationId["payer"], nonce: row.nonce };
        return id ? [{ id, createdAt: row.createdAt }] : [];
      });
    },
  };
}
