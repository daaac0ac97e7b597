import type { Chain, Finding, Mined } from "../chain/chain.ts";
import { type Address, NETWORKS, type NetworkName } from "../chain/networks.ts";
import type { Clock } from "../lib/clock.ts";
import { forEachLimited } from "../lib/concurrency.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../storage/store.ts";
import type { Claims } from "./claims.ts";
import type { Crediting } from "./crediting.ts";
import { isFinal } from "./depth.ts";
import { isOurs, isSameTransfer } from "./matching.ts";
import { paymentQueries } from "./payment-queries.ts";
import type { Proof } from "./proof.ts";
import type { PaymentRow } from "./schema.ts";

export interface FinalityParts {
  store: Store;
  clock: Clock;
  log: Log;
  chains: ReadonlyMap<NetworkName, Pick<Chain, "find">>;
  recipient: Address;
  confirmations: Record<NetworkName, number>;
  claims: Claims;
  crediting: Crediting;
}

const MOST_A_PASS = 60;
const AT_ONCE = 2;
/** A node that falls behind for a moment must not take a customer's money: gone is what is gone twice in a row. */
const TIMES_GONE = 2;
/** A node's word that a block is final is not the last: the transfer is watched on for this long. */
const WATCHED_MS = 10 * 60 * 1000;

/**
 * Looks once more at what was credited and is not final, on every network (billing.md, x402 3): notes a transfer's new
 * block, its finality, or reverses it when it is gone. Each pass goes on behind where the last one ended.
 */
export function createFinalityCheck(parts: FinalityParts) {
  const { store, clock, log, chains, recipient, confirmations, claims, crediting } = parts;
  const rows = paymentQueries(store.db);
  const lastSeen = new Map<NetworkName, string>();
  /** How often in a row a payment was not there. */
  const gone = new Map<number, number>();

  /** Networks whose last pass has not ended: their nodes are slow. */
  const passing = new Set<NetworkName>();

  async function recheckNetwork(network: NetworkName, chain: Pick<Chain, "find">, stop: AbortSignal): Promise<void> {
    const { chainId } = NETWORKS[network];
    const hashes = rows.toRecheck(chainId, lastSeen.get(network) ?? "", MOST_A_PASS);
    lastSeen.set(network, hashes.length < MOST_A_PASS ? "" : (hashes.at(-1) ?? ""));
    await forEachLimited(AT_ONCE, hashes, async (txHash) => {
      if (stop.aborted) return;
      const finding = await chain.find(txHash);
      for (const payment of rows.ofTransaction(chainId, txHash)) {
        if (payment.status === "credited") apply({ network, txHash }, payment, finding);
      }
    });
  }

  function apply(proof: Proof, payment: PaymentRow, finding: Finding): void {
    if (finding.kind === "unavailable") return;
    if (finding.kind === "mined" && holds(finding.mined, payment, proof.network)) {
      gone.delete(payment.paymentId);
      follow(payment, finding.mined, confirmations[proof.network]);
      return;
    }
    const times = (gone.get(payment.paymentId) ?? 0) + 1;
    gone.set(payment.paymentId, times);
    if (times < TIMES_GONE) return;
    gone.delete(payment.paymentId);
    store.transaction(() => {
      crediting.reverse(proof.network, payment);
      // Mined again, as most such transactions are, it is credited again.
      claims.keep(payment.accountId, proof, "a reorganisation of the chain has removed the transaction");
    });
    const { accountId, transactionId } = payment;
    log.warn({ ...proof, accountId, transactionId }, "payment reversed: a reorganisation has removed it");
  }

  /** Whether the transaction still makes the transfer that was credited. */
  function holds({ blockHash, transfers }: Mined, payment: PaymentRow, network: NetworkName): boolean {
    const transfer = transfers.find((one) => one.logIndex === payment.logIndex);
    if (transfer === undefined || !isSameTransfer(transfer, payment)) return false;
    // In its own block it is what it was, though the host may have another recipient since.
    return blockHash === payment.blockHash || isOurs(transfer, { network, recipient });
  }

  function follow(payment: PaymentRow, mined: Mined, atLeast: number): void {
    const { paymentId, blockHash, blockNumber, createdAt } = payment;
    const isMoved = blockHash !== mined.blockHash || BigInt(blockNumber) !== mined.blockNumber;
    const isDone = isFinal(mined, atLeast) && clock.now() - createdAt >= WATCHED_MS;
    if (!isMoved && !isDone) return;
    const place = { blockHash: mined.blockHash, blockNumber: Number(mined.blockNumber) };
    store.transaction(() => rows.change(paymentId, { ...place, ...(isDone ? { status: "final" } : {}) }));
  }

  return {
    /** One look at each, at most sixty transactions a network. */
    pass: async (stop: AbortSignal): Promise<void> => {
      const idle = [...chains].filter(([network]) => !passing.has(network));
      await forEachLimited(chains.size, idle, async ([network, chain]) => {
        passing.add(network);
        await recheckNetwork(network, chain, stop).finally(() => passing.delete(network));
      });
    },
  };
}
