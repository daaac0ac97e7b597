import type { Chain, Mined } from "../chain/chain.ts";
import { type Address, NETWORKS, type NetworkName } from "../chain/networks.ts";
import type { Clock } from "../lib/clock.ts";
import { createFairLimiter, type FairLimiter } from "../limits/fair-limiter.ts";
import { OUTGOING } from "../limits/outgoing.ts";
import type { Store } from "../storage/store.ts";
import { answerTo } from "./answer.ts";
import type { Claims, Settled } from "./claims.ts";
import type { Credits } from "./credits.ts";
import { BLOCK_SECONDS } from "./depth.ts";
import type { Invoices } from "./invoices.ts";
import { matchTransfers } from "./match-transfers.ts";
import { createNotFoundCache } from "./not-found-cache.ts";
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
  credits: Credits;
}

/** Concurrent calls to each node for one transaction. */
const CALLS_AT_ONCE = 2;
const MIN_CONCURRENCY = 4;
const MAX_WAITING = 32;

/**
 * Limits the verifications on one network, those of background checks included. No account may use more than a quarter of
 * them, and waiting accounts take turns, so that no payment waits for another account's crowd.
 */
function createLimiter({ health }: Pick<Chain, "health">): FairLimiter {
  const connections = CALLS_AT_ONCE * Math.max(1, health().length);
  const concurrency = Math.max(MIN_CONCURRENCY, Math.floor(OUTGOING.rpc.connections / connections));
  return createFairLimiter({ concurrency, maxPerOwner: Math.floor(concurrency / 4), maxWaiting: MAX_WAITING });
}

export interface Verifier {
  /**
   * Looks up a transaction and credits what is due to the owners of the invoices it pays. Concurrent calls for the same
   * transaction share one answer; one that was not found is not looked up again before its `Retry-After`. `actor` is
   * the account that asked, or `host`; beyond 32 waiting for one actor the answer is `unavailable`.
   */
  verify(proof: Proof, actor: string): Promise<Verdict>;
  /** The same, but also looks up what was not found a moment ago: for a transaction that somebody else has seen. */
  verifyUncached(proof: Proof, actor: string): Promise<Verdict>;
  /** Whether `verify` would call a node, rather than join a call or repeat an answer. */
  needsLookup(proof: Proof): boolean;
  /** Makes no calls from now on (the answer is `unavailable`); resolves when those in progress have ended. */
  close(): Promise<void>;
}

/** A lookup of one transaction, shared by all who ask for it meanwhile. */
interface Flight {
  landed: Promise<Verdict>;
  /** The actors that have it in their queue. */
  waiting: Set<string>;
  begun: boolean;
  begin(actor: string): Promise<void>;
}

export function createVerifier(parts: VerifierParts): Verifier {
  const { store, clock, chains, recipient, confirmations, invoices, claims, credits } = parts;
  const rows = paymentQueries(store.db);
  // One for each network, so that nodes that hang do not hold up other networks.
  const limiters = new Map(
    Array.from(chains, ([network, chain]): [NetworkName, FairLimiter] => [network, createLimiter(chain)]),
  );
  const flights = new Map<string, Flight>();
  const missing = createNotFoundCache<Verdict>(clock);
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
      match.kind === "due" ? { kind: "credited", payment: credits.credit(proof, mined, match.due, actor) } : match,
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
    // All callers get the rejection; without callers it must not count as unhandled.
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

  function verifyUncached(proof: Proof, actor: string): Promise<Verdict> {
    const key = keyOf(proof);
    const limiter = limiters.get(proof.network);
    if (!limiter) return Promise.resolve({ kind: "unavailable" });
    const flight = flights.get(key) ?? openFlight(proof);
    // A second actor queues it too: whichever turn comes first makes the call for both.
    if (!flight.begun && !flight.waiting.has(actor)) {
      if (!limiter.submit(actor, () => flight.begin(actor))) return Promise.resolve({ kind: "unavailable" });
      flight.waiting.add(actor);
    }
    flights.set(key, flight);
    return flight.landed;
  }

  return {
    verify: (proof, actor) => {
      const known = missing.find(keyOf(proof));
      return known === undefined ? verifyUncached(proof, actor) : Promise.resolve(known);
    },
    verifyUncached,
    needsLookup: (proof) => missing.find(keyOf(proof)) === undefined && !flights.has(keyOf(proof)),
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
