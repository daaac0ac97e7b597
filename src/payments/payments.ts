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
import { createCrediting } from "./crediting.ts";
import { createFinalityCheck } from "./finality.ts";
import type { Invoices } from "./invoices.ts";
import { createLookUps } from "./look-ups.ts";
import { createNewTransactionLimit } from "./new-transactions.ts";
import type { Payment } from "./payment.ts";
import { type PaymentStatus, paymentQueries } from "./payment-queries.ts";
import { createPaymentTimer } from "./payment-timer.ts";
import { type Proof, parseProof } from "./proof.ts";
import type { Claim } from "./schema.ts";
import { isDecided, type Verdict } from "./verdict.ts";
import { createVerifier } from "./verifier.ts";

const PRESENT_LIMIT_MS = 6_000;
const SETTLED_LIMIT_MS = 5_000;
const SETTLED_RETRY_MS = 250;
const CLAIMS_A_LOOK = 12;
/** Fewer than verifications may run at once, so that claims never hold up who presents a payment now. */
const CLAIMS_AT_ONCE = 4;

export interface PaymentParts {
  store: Store;
  clock: Clock;
  log: Log;
  ledger: Ledger;
  meter: Pick<Meter, "settle">;
  audit: Audit;
  invoices: Invoices;
  recipient: Address;
  /** The configured networks. */
  chains: ReadonlyMap<NetworkName, Chain>;
  /** Blocks that a transfer must have, its own included. */
  confirmations: Record<NetworkName, number>;
}

/** A transfer that a facilitator says it has made. */
export interface SettledTransfer extends Proof {
  /** Who is to be credited. */
  accountId: string;
  payer: string;
  amount: Micros;
}

export interface Payments {
  /**
   * Judges the `X-PAYMENT` header of a request and credits what it proves, to whoever's invoice it pays, within 6 s
   * (api.md section 7). Null for no header. Throws `invalid_request` for one that is malformed and `rate_limited` for too
   * many transactions that were never seen before, or too many looks at the same.
   */
  present(accountId: string, header: string | null): Promise<Payment | null>;
  /**
   * Credits an account, by no invoice, with what a facilitator settled, once its node shows the transfer: within 5 s. If
   * it does not by then, the claim is kept and credited when it does.
   */
  creditSettled(settled: SettledTransfer): Promise<Payment>;
  countClaims(): Record<Claim["status"], number>;
  countPayments(): Record<PaymentStatus, number>;
  /** Forgets the claims that were decided long ago. */
  prune(): void;
  tick(): Promise<void>;
  /** Looks at claims and at credited payments from now on, without being asked. */
  run(): void;
  /** Ends that; nothing is asked of a node from when it resolves: proofs that still come are kept. */
  stop(): Promise<void>;
}

/** Payments by transfers of USDC to this host's address, verified on the chain (billing.md, x402). */
export function createPayments(parts: PaymentParts): Payments {
  const { store, clock, log, chains, invoices } = parts;
  const networks = [...chains.keys()];
  const rows = paymentQueries(store.db);
  const claims = createClaims(store, clock, networks);
  const crediting = createCrediting(parts);
  const verifier = createVerifier({ ...parts, claims, crediting });
  const finality = createFinalityCheck({ ...parts, claims, crediting });
  const newTransactions = createNewTransactionLimit(clock);
  const lookUps = createLookUps(clock);
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
   * What an account is told of a transaction that is credited to it; null where none is. That it was credited is told
   * once, also when that happened in the background, between one presentation and the next.
   */
  function tell(accountId: string, { network, txHash }: Proof): Payment | null {
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
    // While it is, other transfers of the transaction may be due.
    const told = isPending ? null : tell(accountId, proof);
    if (told) return told;
    // Somebody else's claim is not to be noticed.
    if (!isPending || claim.accountId !== accountId)
      newTransactions.admit(accountId, `${proof.network} ${proof.txHash}`);
    if (verifier.wouldAsk(proof)) lookUps.admit(accountId);
    return judge(accountId, proof, verifier.verify(proof, accountId), PRESENT_LIMIT_MS);
  }

  async function judge(accountId: string, proof: Proof, look: Promise<Verdict>, limitMs: number): Promise<Payment> {
    const verdict: Verdict = (await withTimeout(look, limitMs)) ?? { kind: "unavailable" };
    const answer = answerTo(accountId, verdict, proof.network);
    // Also beside a credit: another transfer of the transaction may have to wait.
    if (!isDecided(verdict)) claims.keep(accountId, proof, answer.kind === "refused" ? answer.reason : MORE_TO_COME);
    const told = tell(accountId, proof);
    // Those who presented it at the same moment are all told that it is credited.
    return answer.kind === "credited" ? answer : (told ?? answer);
  }

  async function creditSettled({ accountId, network, txHash, payer, amount }: SettledTransfer): Promise<Payment> {
    const proof = { network, txHash: txHash.toLowerCase() };
    if (!claims.keepSettled(proof, { accountId, payer, amount })) return answerTo(accountId, NOBODYS, network);
    const endsAt = performance.now() + SETTLED_LIMIT_MS;
    for (;;) {
      const look = verifier.verifyAfresh(proof, accountId);
      const answer = await judge(accountId, proof, look, Math.max(0, endsAt - performance.now()));
      const mayCome = answer.kind === "refused" && answer.retryAfterSeconds !== undefined;
      if (!mayCome || performance.now() + SETTLED_RETRY_MS >= endsAt) return answer;
      await waitFor(SETTLED_RETRY_MS, stopping.signal);
    }
  }

  async function retryClaims(stop: AbortSignal): Promise<void> {
    await forEachLimited(CLAIMS_AT_ONCE, claims.due(CLAIMS_A_LOOK), async ({ proof, claim }) => {
      if (stop.aborted) return;
      // Before it is looked at, so that one whose look fails is not the next again, and again.
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

/** What is said of a transfer that another account has claimed. */
const NOBODYS: Verdict = { kind: "mined", outcomes: [{ kind: "unmatched" }] };
