import type { Chain, Mined } from "../../chain/chain.ts";
import { type Address, NETWORKS, type NetworkName } from "../../chain/networks.ts";
import { createLanes } from "../../lib/bounds.ts";
import type { Store } from "../../storage/store.ts";
import type { Claim } from "../table.ts";
import { answerTo } from "./answering.ts";
import type { Claims, Settled } from "./claims.ts";
import type { Crediting } from "./crediting.ts";
import type { Invoices } from "./invoices.ts";
import { matchTransfers } from "./matching.ts";
import { paymentQueries } from "./payment-table.ts";
import type { Proof } from "./proof.ts";
import { hasCredited, isDecided, type Outcome, type Verdict } from "./verdict.ts";

export interface VerifyingParts {
  store: Store;
  chains: ReadonlyMap<NetworkName, Pick<Chain, "find">>;
  recipient: Address;
  confirmations: Record<NetworkName, number>;
  invoices: Pick<Invoices, "withAmount">;
  claims: Claims;
  crediting: Crediting;
}

/** On each network, of presenters and of the background together: a node is asked a few things about each. */
const MOST_AT_ONCE = 16;

export interface Verifying {
  /**
   * Asks the network about a transaction and credits what is due, to whoever's invoice it pays. Those who ask about the
   * same one at once share one answer. `actor` is who asked, or `host`.
   */
  verify(proof: Proof, actor: string): Promise<Verdict>;
  /** From now on nothing is asked, and nothing can be said; resolves when what was asked is answered. */
  close(): Promise<void>;
}

export function createVerifying(parts: VerifyingParts): Verifying {
  const { store, chains, recipient, confirmations, invoices, claims, crediting } = parts;
  const rows = paymentQueries(store.db);
  // A network whose nodes hang holds up no other's payments.
  const lanes = new Map(
    Array.from(chains, ([network, chain]) => [network, { chain, inLane: createLanes(MOST_AT_ONCE) }]),
  );
  const flights = new Map<string, Promise<Verdict>>();
  let closed = false;

  async function ask(proof: Proof, actor: string): Promise<Verdict> {
    const lane = lanes.get(proof.network);
    if (!lane) return { kind: "unavailable" };
    const finding = await lane.inLane(async () => (closed ? null : lane.chain.find(proof.txHash)));
    if (finding === null) return { kind: "unavailable" };
    if (finding.kind === "unavailable" || finding.kind === "unknown") return { kind: finding.kind };
    return store.transaction(() => {
      const verdict: Verdict =
        finding.kind === "failed"
          ? { kind: "failed" }
          : { kind: "mined", outcomes: creditDue(proof, finding.mined, actor) };
      const claim = claims.find(proof);
      if (claim?.status === "pending" && isDecided(verdict)) end(proof, claim, verdict);
      return verdict;
    });
  }

  function creditDue(proof: Proof, mined: Mined, actor: string): Outcome[] {
    const { network, txHash } = proof;
    const matches = matchTransfers(mined, {
      network,
      recipient,
      confirmations: confirmations[network],
      invoicesOf: invoices.withAmount,
      payments: rows.ofTransaction(NETWORKS[network].chainId, txHash),
      settled: settledOf(claims.find(proof)),
    });
    return matches.map((match) =>
      match.kind === "due" ? { kind: "credited", payment: crediting.credit(proof, mined, match.due, actor) } : match,
    );
  }

  function end(proof: Proof, claim: Claim, verdict: Verdict): void {
    const answer = answerTo(claim.accountId, verdict, proof.network);
    claims.decide(
      proof,
      hasCredited(verdict) ? "credited" : "refused",
      answer.kind === "refused" ? answer.reason : null,
    );
  }

  return {
    verify({ network, txHash }, actor) {
      const key = `${network} ${txHash}`;
      const flight = flights.get(key) ?? ask({ network, txHash }, actor).finally(() => flights.delete(key));
      flights.set(key, flight);
      return flight;
    },
    async close() {
      closed = true;
      await Promise.allSettled(flights.values());
    },
  };
}

function settledOf(claim: Claim | undefined): Settled | null {
  if (!claim || claim.payer === null || claim.amount === null) return null;
  return { accountId: claim.accountId, payer: claim.payer, amount: claim.amount };
}
