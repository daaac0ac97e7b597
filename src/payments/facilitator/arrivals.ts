import type { AuthorizationFinding, Chain } from "../../chain/chain.ts";
import { MAX_BLOCKS_SEARCHED } from "../../chain/find-authorization.ts";
import type { NetworkName } from "../../chain/networks.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { waitFor } from "../../lib/wait-for.ts";
import type { Payment } from "../payment.ts";
import type { Payments } from "../payments.ts";
import type { AuthorizationRow } from "../schema.ts";
import type { AuthorizationId, Authorizations } from "./authorizations.ts";

export interface ArrivalParts {
  clock: Clock;
  log: Log;
  authorizations: Authorizations;
  chains: ReadonlyMap<NetworkName, Pick<Chain, "findAuthorization">>;
  creditSettled: Payments["creditSettled"];
}

/** Finds signed transfers when they arrive on the chain. */
export interface Arrivals {
  /**
   * Checks once, and credits the transfer if it is there. Marks it as lapsed if it can no longer arrive. `requestId` is of
   * the request that asks, for the log.
   */
  look(id: AuthorizationId, requestId?: string): Promise<Payment>;
  /** Checks until it is there, for at most `limitMs`. Throws the signal's reason. */
  await(id: AuthorizationId, limitMs: number, signal: AbortSignal, requestId: string): Promise<Payment>;
}

const RETRY_MS = 250;
const RETRY_SECONDS = 15;
/** Time after a signature's expiry in which its block may still become known; clocks may differ, too. */
const LAPSE_AFTER_MS = 10 * 60 * 1000;
/** Give up if the nodes could not say what became of it for this long after the signature's expiry. */
const GIVE_UP_AFTER_MS = 24 * 60 * 60 * 1000;

export function createArrivals({ clock, log, authorizations, chains, creditSettled }: ArrivalParts): Arrivals {
  async function look(id: AuthorizationId, requestId?: string): Promise<Payment> {
    const row = authorizations.find(id);
    const chain = chains.get(id.network);
    if (!row || !chain) throw new Error(`no authorization to look for on ${id.network}`);
    const { payer, nonce } = id;
    const finding = await chain.findAuthorization({ payer, nonce, after: BigInt(row.head) });
    const payment = await paymentOf(id, row, finding);
    if (payment.kind !== "refused") return payment;
    if (finding.kind === "unused" && goOnSearching(id, row, finding.upTo)) return payment;
    const isSure =
      finding.kind === "unused"
        ? // A node that was far behind may have said `row.head`; enough nodes must have got further, and found nothing.
          finding.upTo > BigInt(row.head)
        : // A signature that was used for something else pays for nothing either.
          finding.kind === "used" && payment.retryAfterSeconds === undefined;
    if (clock.now() - row.validBefore > (isSure ? LAPSE_AFTER_MS : GIVE_UP_AFTER_MS)) {
      const { accountId, txHash } = row;
      const whose = { ...id, accountId, txHash, requestId };
      if (!isSure) log.error(whose, "gave up looking for a signed payment: the nodes do not say what became of it");
      else if (txHash !== null)
        log.warn(whose, "a signed payment has lapsed: the facilitator says that it settled it, the nodes do not");
      authorizations.change(id, { status: "lapsed" });
    }
    return payment;
  }

  /**
   * If there may be blocks beyond those that one look searches, the next look begins at a later one, with a margin for
   * reorganisations. Returns whether that is so: until then, nothing can be said about the payment.
   */
  function goOnSearching(id: AuthorizationId, { head }: AuthorizationRow, upTo: bigint): boolean {
    if (Number(upTo) - head < MAX_BLOCKS_SEARCHED) return false;
    authorizations.change(id, { head: head + MAX_BLOCKS_SEARCHED / 2 });
    return true;
  }

  async function paymentOf(
    id: AuthorizationId,
    row: AuthorizationRow,
    finding: AuthorizationFinding,
  ): Promise<Payment> {
    if (finding.kind === "used") return credit(id, row, finding.txHash);
    if (finding.kind === "unavailable" && row.txHash !== null) return creditNamed(id, row, row.txHash);
    return {
      kind: "refused",
      reason:
        row.status === "failed"
          ? "the facilitator could not settle the payment"
          : `the payment is not in a block of ${id.network} yet; it is credited once it is: do not pay again meanwhile`,
      retryAfterSeconds: RETRY_SECONDS,
    };
  }

  const settledBy = (id: AuthorizationId, { accountId, amount }: AuthorizationRow, txHash: string) =>
    creditSettled({ accountId, network: id.network, txHash, payer: id.payer, amount });

  /**
   * For nodes that cannot search logs: credits the transaction that the facilitator named, if it has an uncredited
   * transfer of this payer and amount. A transfer credited before is not this one.
   */
  async function creditNamed(id: AuthorizationId, row: AuthorizationRow, txHash: string): Promise<Payment> {
    const payment = await settledBy(id, row, txHash);
    if (payment.kind === "credited") authorizations.change(id, { status: "credited", txHash });
    if (payment.kind !== "known") return payment;
    return { kind: "refused", reason: "the facilitator names a payment that was credited before" };
  }

  async function credit(id: AuthorizationId, row: AuthorizationRow, txHash: string): Promise<Payment> {
    const payment = await settledBy(id, row, txHash);
    if (payment.kind === "refused") return payment;
    authorizations.change(id, { status: "credited", txHash });
    return payment;
  }

  return {
    look,
    async await(id, limitMs, signal, requestId) {
      const endsAt = performance.now() + limitMs;
      for (;;) {
        const payment = await look(id, requestId);
        const mayCome = payment.kind === "refused" && payment.retryAfterSeconds !== undefined;
        if (!mayCome || performance.now() + RETRY_MS > endsAt) return payment;
        await waitFor(RETRY_MS, signal);
      }
    },
  };
}
