import type { Chain } from "../chain/chain.ts";
import { type Address, NETWORKS, type NetworkName } from "../chain/networks.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { forEachLimited, withTimeout } from "../lib/concurrency.ts";
import type { Log } from "../lib/log.ts";
import type { Micros } from "../lib/money.ts";
import { waitFor } from "../lib/wait-for.ts";
import type { Meter } from "../meter/meter.ts";
import type { Audit } from "../storage/audit.ts";
import type { Store } from "../storage/store.ts";
import { answerTo, creditOf } from "./answer.ts";
import { createClaims } from "./claims.ts";
import { createCredits } from "./credits.ts";
import { createFinalityCheck } from "./finality.ts";
import type { Invoices } from "./invoices.ts";
import { createLookupLimit } from "./lookup-limit.ts";
import { createNewTransactionLimit } from "./new-transaction-limit.ts";
import type { Payment } from "./payment.ts";
import { type PaymentStatus, paymentQueries } from "./payment-queries.ts";
import { createPaymentTimer } from "./payment-timer.ts";
import { type Proof, parseProof } from "./proof.ts";
import type { Claim } from "./schema.ts";
import { describeUnclaimed, isDecided, type Verdict } from "./verdict.ts";
import { createVerifier } from "./verifier.ts";

const PRESENT_TIMEOUT_MS = 6_000;
const SETTLED_TIMEOUT_MS = 5_000;
const SETTLED_RETRY_MS = 250;
const CLAIMS_PER_PASS = 12;
/** Lower than the verifier's concurrency, so that claims do not delay payments presented now. */
const CLAIM_CONCURRENCY = 4;

export interface PaymentParts {
  store: Store;
  clock: Clock;
  log: Log;
  ledger: Ledger;
  meter: Pick<Meter, "settle">;
  audit: Audit;
  invoices: Invoices;
  recipient: Address;
  /** The networks that payments are accepted on. */
  networks: readonly NetworkName[];
  /** These, and those that something may still be on its way on. */
  chains: ReadonlyMap<NetworkName, Chain>;
  /** Confirmations that a transfer needs, its own block included. */
  confirmations: Record<NetworkName, number>;
  /** For looking a transaction up once, in place of 6 s, or of 5 s for one that a facilitator settled. */
  deadlineMs?: number | undefined;
}

/** A transfer that a facilitator says it has made. */
export interface SettledTransfer extends Proof {
  /** The account to credit. */
  accountId: string;
  payer: string;
  amount: Micros;
}

export interface Payments {
  /**
   * Verifies a request's `X-PAYMENT` header and credits the transfer to the owner of the invoice it pays, within 6 s
   * (docs/contract/api.md, Payments). Null without a header. Throws `invalid_request` if it is malformed, and
   * `rate_limited` for too many new transactions or lookups.
   */
  present(accountId: string, header: string | null): Promise<Payment | null>;
  /**
   * Credits an account, without an invoice, with what a facilitator settled, once the chain shows the transfer. Waits 5
   * s; after that the claim is stored, and credited when the transfer appears.
   */
  creditSettled(settled: SettledTransfer): Promise<Payment>;
  countClaims(): Record<Claim["status"], number>;
  countPayments(): Record<PaymentStatus, number>;
  /** Removes at most `limit` claims that were decided long ago. Returns whether there may be more. */
  prune(limit: number): boolean;
  /** Makes the background checks that are due. */
  tick(): Promise<void>;
  /** Starts the background checks of claims and credited payments. */
  run(): void;
  /** Stops them. No node is called after it resolves; proofs that still arrive are stored. */
  stop(): Promise<void>;
}

/** Payments by USDC transfers to this host's address, verified on the chain (docs/contract/billing.md, x402). */
export function createPayments(parts: PaymentParts): Payments {
  const { store, clock, log, networks, invoices, deadlineMs } = parts;
  const rows = paymentQueries(store.db);
  const claims = createClaims(store, clock);
  const credits = createCredits(parts);
  const verifier = createVerifier({ ...parts, claims, credits });
  const finality = createFinalityCheck({ ...parts, claims, credits });
  const newTransactions = createNewTransactionLimit(clock);
  const lookupLimit = createLookupLimit(clock);
  const stopping = new AbortController();
  const timer = createPaymentTimer({
    clock,
    log,
    retryClaims,
    async recheck(stop) {
      invoices.expire();
      claims.expire();
      await finality.pass(stop);
    },
  });

  /**
   * What to report of a transaction's transfers credited to this account; null if there are none. A credit is reported
   * as new once, even if it happened in the background between two presentations.
   */
  function report(accountId: string, { network, txHash }: Proof): Payment | null {
    const own = rows
      .ofTransaction(NETWORKS[network].chainId, txHash)
      .filter((payment) => payment.accountId === accountId && payment.status !== "reversed");
    if (own.length === 0) return null;
    const news = own.filter(({ told }) => !told);
    if (news[0] === undefined) return { kind: "known" };
    store.transaction(() => {
      for (const { paymentId } of news) rows.change(paymentId, { told: true });
    });
    return creditOf(news[0], news);
  }

  async function present(accountId: string, header: string | null): Promise<Payment | null> {
    if (header === null) return null;
    const proof = parseProof(header, networks);
    const claim = claims.find(proof);
    const isPending = claim?.status === "pending";
    // While the claim is pending, other transfers of the transaction may be due.
    const reported = isPending ? null : report(accountId, proof);
    if (reported) return reported;
    // Another account's claim must make no visible difference.
    if (!isPending || claim.accountId !== accountId)
      newTransactions.admit(accountId, `${proof.network} ${proof.txHash}`);
    if (verifier.needsLookup(proof)) lookupLimit.admit(accountId);
    return judge(accountId, proof, verifier.verify(proof, accountId), deadlineMs ?? PRESENT_TIMEOUT_MS);
  }

  async function judge(accountId: string, proof: Proof, look: Promise<Verdict>, limitMs: number): Promise<Payment> {
    const verdict: Verdict = (await withTimeout(look, limitMs)) ?? UNAVAILABLE;
    let answer = answerTo(accountId, verdict, proof.network);
    // Even after a credit: another transfer of the transaction may still have to wait.
    const reason = answer.kind === "refused" ? answer.reason : MORE_TO_COME;
    const isKept = isDecided(verdict) || claims.keep(accountId, proof, reason);
    if (!isKept && verdict.kind === "unavailable") answer = answerTo(accountId, { kind: "forgotten" }, proof.network);
    const unclaimed = isDecided(verdict) ? describeUnclaimed(verdict) : null;
    if (unclaimed !== null) claims.keepRefused(accountId, proof, unclaimed);
    const reported = report(accountId, proof);
    // Everybody who presented it at the same time is told that it is credited.
    return answer.kind === "credited" ? answer : (reported ?? answer);
  }

  async function creditSettled({ accountId, network, txHash, payer, amount }: SettledTransfer): Promise<Payment> {
    const proof = { network, txHash: txHash.toLowerCase() };
    // Not now: the transaction is still looked for on behalf of another payer or account.
    if (!claims.keepSettled(proof, { accountId, payer, amount })) return answerTo(accountId, UNAVAILABLE, network);
    const endsAt = performance.now() + SETTLED_TIMEOUT_MS;
    for (;;) {
      const look = verifier.verifyUncached(proof, accountId);
      const timeoutMs = deadlineMs ?? Math.max(0, endsAt - performance.now());
      const answer = await judge(accountId, proof, look, timeoutMs);
      const mayCome = answer.kind === "refused" && answer.retryAfterSeconds !== undefined;
      if (!mayCome || performance.now() + SETTLED_RETRY_MS >= endsAt) return answer;
      await waitFor(SETTLED_RETRY_MS, stopping.signal);
    }
  }

  async function retryClaims(stop: AbortSignal): Promise<void> {
    await forEachLimited(CLAIM_CONCURRENCY, claims.due(CLAIMS_PER_PASS), async ({ proof, claim }) => {
      if (stop.aborted) return;
      // Postponed first, so that a claim whose check fails does not come first again.
      claims.postpone(claim);
      await verifier.verify(proof, "host");
    });
  }

  return {
    present,
    creditSettled,
    countClaims: claims.countByStatus,
    countPayments: rows.countByStatus,
    prune: claims.prune,
    tick: timer.tick,
    run: timer.run,
    async stop() {
      stopping.abort(new AppError("internal_error", "the host is stopping; try again", { status: 503 }));
      await timer.stop();
      await verifier.close();
    },
  };
}

const MORE_TO_COME = "another transfer of the transaction is not deep enough yet";

const UNAVAILABLE: Verdict = { kind: "unavailable" };
