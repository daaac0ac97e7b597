import type { Mined } from "../chain/chain.ts";
import { type Address, NETWORKS, type NetworkName } from "../chain/networks.ts";
import type { Clock } from "../lib/clock.ts";
import { createClaims } from "./claims.ts";
import { type CreditingParts, createCrediting } from "./credits.ts";
import { depthOf } from "./depth.ts";
import { invoiceQueries } from "./invoice-queries.ts";
import { RECENT_MS } from "./invoices.ts";
import { type Match, matchTransfers } from "./match-transfers.ts";
import { paymentQueries } from "./payment-queries.ts";
import type { Proof } from "./proof.ts";
import type { PaymentRow } from "./schema.ts";

export interface UnclaimedParts extends Omit<CreditingParts, "invoices"> {
  clock: Clock;
  recipient: Address;
  confirmations: Record<NetworkName, number>;
}

/** What became of a transaction that the operator gives to an account. */
export type Gift = { kind: "credited"; payments: PaymentRow[] } | { kind: "refused"; reason: string };

/**
 * Credits an account, on the operator's word, with the USDC of a transaction that nobody else can claim: each transfer only
 * once, and none that pays somebody's quote or was credited before. After a restore, such are the payments of quotes that
 * the backup does not have.
 */
export function creditUnclaimed(
  { recipient, confirmations, ...parts }: UnclaimedParts,
  proof: Proof,
  mined: Mined,
  accountId: string,
): Gift {
  const { store, clock } = parts;
  const { network, txHash } = proof;
  const claims = createClaims(store, clock);
  const { credit } = createCrediting({ ...parts, invoices: null });
  const invoices = invoiceQueries(store.db);
  return store.transaction(() => {
    if (claims.find(proof)?.status === "pending")
      return refused("it is still being looked at, and may be credited yet");
    const matches = matchTransfers(mined, {
      network,
      recipient,
      confirmations: confirmations[network],
      invoicesOf: (amount) => invoices.withAmount(amount, clock.now() - RECENT_MS),
      payments: paymentQueries(store.db).ofTransaction(NETWORKS[network].chainId, txHash),
      settled: null,
    });
    const unclaimed = matches.filter((match) => match.kind === "unmatched" || match.kind === "early");
    if (unclaimed.length === 0) return refused(reasonOf(matches));
    for (const { transfer } of unclaimed) {
      const depth = depthOf(network, confirmations[network], transfer.amount, mined);
      if (!depth.isEnough) return refused(depth.reason);
    }
    const payments = unclaimed.map(({ transfer, before }) =>
      credit(proof, mined, { transfer, accountId, invoiceId: null, before }, "operator"),
    );
    claims.settle(proof);
    return { kind: "credited", payments };
  });
}

const refused = (reason: string): Gift => ({ kind: "refused", reason });

function reasonOf(matches: readonly Match[]): string {
  const has = (kind: Match["kind"]) => matches.some((match) => match.kind === kind);
  if (has("paid")) return "it was credited before";
  if (has("due") || has("shallow")) return "it pays a quote: whoever presents it, the quote's account is credited";
  return "it holds no transfer of USDC to this host's address";
}
