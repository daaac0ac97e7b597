import type { Chain } from "../../chain/chain.ts";
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

/** The other end of a facilitated payment: signed transfers, as they arrive on the chain. */
export interface Arrivals {
  /** Looks once, and credits what is there. Ends what can come no more. */
  look(id: AuthorizationId): Promise<Payment>;
  /** Looks until it is there, for `limitMs`. Throws the signal's reason. */
  await(id: AuthorizationId, limitMs: number, signal: AbortSignal): Promise<Payment>;
}

const LOOK_AGAIN_MS = 250;
const RETRY_SECONDS = 15;
/** Behind its last moment, in which a block may become known: the chain's clock and this host's differ, too. */
const LAPSES_MS = 10 * 60 * 1000;
/** Where no node can tell for so long, nobody asks any more. */
const FORGOTTEN_MS = 24 * 60 * 60 * 1000;

export function createArrivals({ clock, log, authorizations, chains, creditSettled }: ArrivalParts): Arrivals {
  async function look(id: AuthorizationId): Promise<Payment> {
    const row = authorizations.find(id);
    const chain = chains.get(id.network);
    if (!row || !chain) throw new Error(`no authorization to look for on ${id.network}`);
    const { payer, nonce, network } = id;
    const finding = await chain.findAuthorization({ payer, nonce, after: BigInt(row.head) });
    if (finding.kind === "used") return credit(id, row, finding.txHash);
    if (finding.kind === "unavailable" && row.txHash !== null) return creditNamed(id, row, row.txHash);
    const silentMs = clock.now() - row.validBefore;
    if (silentMs > (finding.kind === "unused" ? LAPSES_MS : FORGOTTEN_MS)) {
      const { accountId } = row;
      if (finding.kind === "unavailable") log.error({ ...id, accountId }, "a signed payment was lost sight of");
      authorizations.change(id, { status: "lapsed" });
    }
    return {
      kind: "refused",
      reason:
        row.status === "failed"
          ? "the facilitator could not settle the payment"
          : `the payment is not in a block of ${network} yet; it is credited when it is: do not pay again before`,
      retryAfterSeconds: RETRY_SECONDS,
    };
  }

  const settledBy = (id: AuthorizationId, { accountId, amount }: AuthorizationRow, txHash: string) =>
    creditSettled({ accountId, network: id.network, txHash, payer: id.payer, amount });

  /**
   * By the facilitator's word, where no node searches its logs and all of them know transactions: this payer's transfer,
   * of this amount, that was credited to nobody. One that was credited before is not this one.
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
    async await(id, limitMs, signal) {
      const endsAt = performance.now() + limitMs;
      for (;;) {
        const payment = await look(id);
        const mayCome = payment.kind === "refused" && payment.retryAfterSeconds !== undefined;
        if (!mayCome || performance.now() + LOOK_AGAIN_MS > endsAt) return payment;
        await waitFor(LOOK_AGAIN_MS, signal);
      }
    },
  };
}
