import type { Chain, Finding, Mined } from "../chain/chain.ts";
import { type Address, NETWORKS, type NetworkName } from "../chain/networks.ts";
import type { Clock } from "../lib/clock.ts";
import { forEachLimited } from "../lib/concurrency.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../storage/store.ts";
import type { Claims } from "./claims.ts";
import type { Credits } from "./credits.ts";
import { isFinal } from "./depth.ts";
import { isOurs, isSameTransfer } from "./match-transfers.ts";
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
  credits: Credits;
}

const MAX_PER_PASS = 60;
const CONCURRENCY = 2;
/** A node may lag for a moment, so a transfer must be missing twice in a row before its credit is reversed. */
const MISSES_BEFORE_REVERSAL = 2;
/** A transfer is watched at least this long, even if a node says that its block is final. */
const WATCH_MS = 10 * 60 * 1000;

/**
 * Rechecks credited payments until they are final, on every network (docs/contract/billing.md, Depth): records a
 * transfer's new block or its finality, and reverses the credit if the transfer is gone. Each pass continues where the
 * last one ended.
 */
export function createFinalityCheck(parts: FinalityParts) {
  const { store, clock, log, chains, recipient, confirmations, claims, credits } = parts;
  const rows = paymentQueries(store.db);
  const lastSeen = new Map<NetworkName, string>();
  /** How many times in a row each payment was missing. */
  const misses = new Map<number, number>();

  /** Networks whose last pass is still running, because their nodes are slow. */
  const passing = new Set<NetworkName>();

  async function recheckNetwork(network: NetworkName, chain: Pick<Chain, "find">, stop: AbortSignal): Promise<void> {
    const { chainId } = NETWORKS[network];
    const hashes = rows.toRecheck(chainId, lastSeen.get(network) ?? "", MAX_PER_PASS);
    lastSeen.set(network, hashes.length < MAX_PER_PASS ? "" : (hashes.at(-1) ?? ""));
    await forEachLimited(CONCURRENCY, hashes, async (txHash) => {
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
      misses.delete(payment.paymentId);
      follow(payment, finding.mined, confirmations[proof.network]);
      return;
    }
    const times = (misses.get(payment.paymentId) ?? 0) + 1;
    misses.set(payment.paymentId, times);
    if (times < MISSES_BEFORE_REVERSAL) return;
    misses.delete(payment.paymentId);
    store.transaction(() => {
      credits.reverse(proof.network, payment);
      // Most such transactions are mined again; then it is credited again.
      claims.keep(payment.accountId, proof, "a reorganisation of the chain has removed the transaction");
    });
    const { accountId, transactionId } = payment;
    log.warn({ ...proof, accountId, transactionId }, "payment reversed: a reorganisation has removed it");
  }

  /** Whether the transaction still contains the transfer that was credited. */
  function holds({ blockHash, transfers }: Mined, payment: PaymentRow, network: NetworkName): boolean {
    const transfer = transfers.find((one) => one.logIndex === payment.logIndex);
    if (transfer === undefined || !isSameTransfer(transfer, payment)) return false;
    // In the same block it counts even if the host's recipient has changed since.
    return blockHash === payment.blockHash || isOurs(transfer, { network, recipient });
  }

  function follow(payment: PaymentRow, mined: Mined, atLeast: number): void {
    const { paymentId, blockHash, blockNumber, createdAt } = payment;
    const isMoved = blockHash !== mined.blockHash || BigInt(blockNumber) !== mined.blockNumber;
    const isDone = isFinal(mined, atLeast) && clock.now() - createdAt >= WATCH_MS;
    if (!isMoved && !isDone) return;
    const place = { blockHash: mined.blockHash, blockNumber: Number(mined.blockNumber) };
    store.transaction(() => rows.change(paymentId, { ...place, ...(isDone ? { status: "final" } : {}) }));
  }

  return {
    /** Checks at most sixty transactions per network, each once. */
    pass: async (stop: AbortSignal): Promise<void> => {
      const idle = [...chains].filter(([network]) => !passing.has(network));
      await forEachLimited(chains.size, idle, async ([network, chain]) => {
        passing.add(network);
        await recheckNetwork(network, chain, stop).finally(() => passing.delete(network));
      });
    },
  };
}
