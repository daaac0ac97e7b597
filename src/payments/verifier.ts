import type { Chain, Mined } from "../chain/chain.ts";
import { type Address, NETWORKS, type NetworkName } from "../chain/networks.ts";
import type { Clock } from "../lib/clock.ts";
import { createFairLimiter, type FairLimiter } from "../limits/fair-limiter.ts";
import { OUTGOING } from "../limits/outgoing.ts";
import type { Store } from "../storage/store.ts";
import { answerTo } from "./answer.ts";
import type { Claims, Settled } from "./claims.ts";
import type { Crediting } from "./crediting.ts";
import { BLOCK_SECONDS } from "./depth.ts";
import type { Invoices } from "./invoices.ts";
import { matchTransfers } from "./matching.ts";
import { createMissing } from "./missing.ts";
import { paymentQueries } from "./payment-queries.ts";
import type { Proof } from "./proof.ts";
import type { Claim } from "./schema.ts";
import { hasCredited, isDecided, type Outcome, type Verdict } from "./verdict.ts";

export interface VerifierParts {
  store: Store;
  clock: Clock;
  chains: ReadonlyMap<NetworkName, Pick<Chain, "find" | "health">>;
  recipient: Address;
  confirmations: Record<NetworkName, number>;
  invoices: Pick<Invoices, "withAmount">;
  claims: Claims;
  crediting: Crediting;
}

/** A node is asked two things at once about a transaction. */
const CALLS_AT_ONCE = 2;
const MIN_CONCURRENCY = 4;
const MAX_WAITING = 32;

/**
 * On each network, of presenters and of the background together. No account has more than a quarter of the lanes, and
 * those who wait are served in turn, so that nobody's payment waits for a crowd of another's.
 */
function openLanes({ health }: Pick<Chain, "health">): FairLimiter {
  const connections = CALLS_AT_ONCE * Math.max(1, health().length);
  const concurrency = Math.max(MIN_CONCURRENCY, Math.floor(OUTGOING.rpc.connections / connections));
  return createFairLimiter({ concurrency, maxPerOwner: Math.floor(concurrency / 4), maxWaiting: MAX_WAITING });
}

export interface Verifying {
  /**
   * Asks the network about a transaction and credits what is due, to whoever's invoice it pays. Those who ask about the
   * same one at once share one answer; one that was not found is not looked for again before its `Retry-After`.
   * `actor` is who asked, or `host`: 32 may wait for each, of further ones nothing can be said.
   */
  verify(proof: Proof, actor: string): Promise<Verdict>;
  /** The same, and looks again whatever was not found a moment ago: for what somebody else saw on the chain. */
  verifyAfresh(proof: Proof, actor: string): Promise<Verdict>;
  /** Whether `verify` would ask a node for it, not wait for what was asked already or repeat what was said. */
  wouldAsk(proof: Proof): boolean;
  /** From now on nothing is asked, and nothing can be said; resolves when what was asked is answered. */
  close(): Promise<void>;
}

/** A look at one transaction, for all who asked for it since the one before. */
interface Flight {
  landed: Promise<Verdict>;
  /** Who has it in his queue. */
  waiting: Set<string>;
  begun: boolean;
  begin(actor: string): Promise<void>;
}

export function createVerifier(parts: VerifierParts): Verifying {
  const { store, clock, chains, recipient, confirmations, invoices, claims, crediting } = parts;
  const rows = paymentQueries(store.db);
  // A network whose nodes hang holds up no other's payments.
  const lanes = new Map(
    Array.from(chains, ([network, chain]): [NetworkName, FairLimiter] => [network, openLanes(chain)]),
  );
  const flights = new Map<string, Flight>();
  const missing = createMissing<Verdict>(clock);
  let closed = false;

  async function ask(proof: Proof, actor: string): Promise<Verdict> {
    const chain = chains.get(proof.network);
    if (!chain || closed) return { kind: "unavailable" };
    const finding = await chain.find(proof.txHash);
    if (finding.kind === "unavailable") return { kind: "unavailable" };
    if (finding.kind === "unknown") {
      const verdict: Verdict = { kind: "unknown" };
      missing.note(keyOf(proof), actor, verdict, BLOCK_SECONDS[proof.network]);
      return verdict;
    }
    missing.forget(keyOf(proof));
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

  function openFlight(proof: Proof): Flight {
    const key = keyOf(proof);
    const { promise: landed, resolve, reject } = Promise.withResolvers<Verdict>();
    // Each of those who wait is told; where none is left, nobody is.
    landed.catch(() => undefined);
    const flight: Flight = {
      landed,
      waiting: new Set(),
      begun: false,
      async begin(actor) {
        if (flight.begun) return;
        flight.begun = true;
        await ask(proof, actor).then(resolve, reject);
        flights.delete(key);
      },
    };
    return flight;
  }

  function verifyAfresh(proof: Proof, actor: string): Promise<Verdict> {
    const key = keyOf(proof);
    const lane = lanes.get(proof.network);
    if (!lane) return Promise.resolve({ kind: "unavailable" });
    const flight = flights.get(key) ?? openFlight(proof);
    // Who joins waits in a queue of his own too: whoever's turn comes first asks for both.
    if (!flight.begun && !flight.waiting.has(actor)) {
      if (!lane.submit(actor, () => flight.begin(actor))) return Promise.resolve({ kind: "unavailable" });
      flight.waiting.add(actor);
    }
    flights.set(key, flight);
    return flight.landed;
  }

  return {
    verify: (proof, actor) => {
      const known = missing.find(keyOf(proof));
      return known === undefined ? verifyAfresh(proof, actor) : Promise.resolve(known);
    },
    verifyAfresh,
    wouldAsk: (proof) => missing.find(keyOf(proof)) === undefined && !flights.has(keyOf(proof)),
    async close() {
      closed = true;
      await Promise.allSettled(flights.values().map(({ landed }) => landed));
    },
  };
}

const keyOf = ({ network, txHash }: Proof): string => `${network} ${txHash}`;

function settledOf(claim: Claim | undefined): Settled | null {
  if (!claim || claim.payer === null || claim.amount === null) return null;
  return { accountId: claim.accountId, payer: claim.payer, amount: claim.amount };
}
