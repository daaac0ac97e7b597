import type { NetworkName } from "../../chain/networks.ts";
import { AppError } from "../../lib/app-error.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { waitFor } from "../../lib/wait-for.ts";
import { OUTGOING } from "../../limits/outgoing.ts";
import { createSlots } from "../../limits/slots.ts";
import { createLookupLimit } from "../lookup-limit.ts";
import { createNewTransactionLimit } from "../new-transaction-limit.ts";
import type { Payment, Refusal } from "../payment.ts";
import type { AuthorizationRow } from "../schema.ts";
import type { Arrivals } from "./arrivals.ts";
import type { AuthorizationId, Authorizations, OpenAuthorization } from "./authorizations.ts";
import type { Facilitator } from "./facilitator.ts";
import { notTaken, readSignedPayment, refusalOf, type SignedPayment, signedPaymentHeader } from "./signed-payment.ts";
import { ASKED, facilitatorRequest, type Offer, paidHeaders } from "./x402-protocol.ts";

export interface FacilitatedPaymentParts {
  clock: Clock;
  log: Log;
  /** Null for none: then only what was passed to one before is still looked for. */
  facilitator: Facilitator | null;
  authorizations: Authorizations;
  arrivals: Arrivals;
  /** The networks that new ones are accepted on. */
  networks: readonly NetworkName[];
  headOf(network: NetworkName): Promise<bigint | null>;
  offer: () => Offer;
  checkEveryMs?: number;
}

export interface FacilitatedPayments {
  /**
   * Has a request's signed payment settled, and credits it once the chain shows it (docs/contract/billing.md, Clients
   * of the x402 protocol). Null if there is none. Throws `invalid_request` if it is malformed, and `rate_limited` for
   * too many new ones or lookups. May take 50 s. What is on its way is recognised, whatever the settings are now.
   */
  take(accountId: string, headers: Headers, requestId: string): Promise<Payment | null>;
  countByStatus: Authorizations["countByStatus"];
  /** Removes at most `limit` decided long ago. Returns whether there may be more. */
  prune(limit: number): boolean;
  /** Starts looking for transfers that were passed to the facilitator and have not arrived. */
  run(): void;
  stop(): Promise<void>;
}

/** The facilitator's node may be ahead of this host's. */
const SETTLED_TIMEOUT_MS = 3_000;
/** Shorter: the facilitator already took its time without an answer. */
const SILENT_TIMEOUT_MS = 1_000;
const CHECK_EVERY_MS = 15_000;
const CHECKED_PER_PASS = 50;

/** Who presents a payment, and with which request. */
interface Presenter {
  accountId: string;
  requestId: string;
}

interface Flight {
  accountId: string;
  payment: Promise<Payment>;
}

/**
 * Payments that a facilitator puts on the chain. Its word is never enough: the chain must show that the signature was
 * used. A signature is stored before it is passed on, so that a facilitator that crashes or hangs loses nobody's money.
 */
export function createFacilitatedPayments(parts: FacilitatedPaymentParts): FacilitatedPayments {
  const { clock, log, facilitator, authorizations, arrivals, networks, headOf, offer } = parts;
  const { checkEveryMs = CHECK_EVERY_MS } = parts;
  const newTransactions = createNewTransactionLimit(clock);
  const lookupLimit = createLookupLimit(clock);
  // A facilitator is slow: no account's payments may take all connections to it.
  const { connections } = OUTGOING.facilitator;
  const slots = createSlots({ total: connections, maxPerOwner: connections / 4 });
  const flights = new Map<string, Flight>();
  const stopping = new AbortController();
  const stopped = Promise.withResolvers<never>();
  stopped.promise.catch(() => undefined);
  let looking: Promise<void> = Promise.resolve();
  /** The last one that was looked for: those behind it have their turn next, then the oldest again. */
  let last: OpenAuthorization | null = null;

  /**
   * Does not wait for the facilitator when the server stops: what it did is found on the chain after the next start.
   */
  const unlessStopped = <T>(answer: Promise<T>): Promise<T> => Promise.race([answer, stopped.promise]);

  async function take(accountId: string, headers: Headers, requestId: string): Promise<Payment | null> {
    const brought = signedPaymentHeader(headers);
    if (brought === null) return null;
    const signed = readSignedPayment(brought.version, brought.header);
    if (signed === null) throw notTaken(brought.version, facilitator && networks);
    const id = idOf(signed);
    const key = keyOf(id);
    const payment = () => pay({ accountId, requestId }, id, signed).finally(() => flights.delete(key));
    const flight = flights.get(key) ?? { accountId, payment: payment() };
    flights.set(key, flight);
    // Anybody can copy a signature from the chain and present it: it belongs to whoever presented it first.
    return flight.accountId === accountId ? flight.payment : refused(PRESENTED_BEFORE);
  }

  async function pay(whose: Presenter, id: AuthorizationId, signed: SignedPayment): Promise<Payment> {
    const before = authorizations.find(id);
    const payment = before ? await payAgain(whose, id, before) : await payFirst(whose, id, signed);
    if (payment.kind !== "credited") return payment;
    const txHash = authorizations.find(id)?.txHash ?? "";
    return { ...payment, headers: { ...payment.headers, ...paidHeaders(signed, txHash) } };
  }

  async function payFirst(whose: Presenter, id: AuthorizationId, signed: SignedPayment): Promise<Payment> {
    const { accountId } = whose;
    if (facilitator === null || !networks.includes(id.network)) {
      throw notTaken(signed.version, facilitator && networks);
    }
    const refusal = refusalOf(signed, offer().recipient, clock.now());
    if (refusal !== null) return refused(refusal);
    newTransactions.admit(accountId, keyOf(id));
    if (slots.acquire(accountId) !== "taken") return refused(BUSY, 5);
    try {
      return await settleFirst(facilitator, whose, id, signed);
    } finally {
      slots.release(accountId);
    }
  }

  async function settleFirst(
    facilitator: Facilitator,
    whose: Presenter,
    id: AuthorizationId,
    signed: SignedPayment,
  ): Promise<Payment> {
    const { network } = id;
    const { accountId, requestId } = whose;
    // Read before the signature is passed on: the transfer is in a later block.
    const head = await headOf(network);
    if (head === null) return refused(`no payment on ${network} can be verified right now; nothing was paid`, 5);
    const request = facilitatorRequest(signed, offer());
    const verdict = await unlessStopped(facilitator.verify(request));
    if (verdict.kind === "silent") {
      log.warn({ ...whose, network }, "the facilitator does not verify a payment");
      return refused("the facilitator does not answer; nothing was paid", 10);
    }
    if (verdict.kind === "invalid") return refused(`the facilitator refuses the payment: ${verdict.reason}`);

    const validBefore = Number(signed.payload.authorization.validBefore) * 1000;
    authorizations.add(id, { accountId, amount: ASKED, head: Number(head), validBefore, createdAt: clock.now() });
    const settlement = await unlessStopped(facilitator.settle(request));
    switch (settlement.kind) {
      case "settled":
        authorizations.change(id, { txHash: settlement.txHash });
        return arrivals.await(id, SETTLED_TIMEOUT_MS, stopping.signal, requestId);
      case "failed":
        authorizations.change(id, { status: "failed" });
        return refused(`the facilitator could not settle the payment: ${settlement.reason}`);
      case "silent":
        log.warn(
          { ...whose, network },
          "the facilitator did not say whether it settled a payment; looking for it on the chain",
        );
        return arrivals.await(id, SILENT_TIMEOUT_MS, stopping.signal, requestId);
    }
  }

  /** Never passed to the facilitator again: it is on the chain, may still arrive, or has expired. */
  async function payAgain(
    { accountId, requestId }: Presenter,
    id: AuthorizationId,
    row: AuthorizationRow,
  ): Promise<Payment> {
    if (row.accountId !== accountId) return refused(PRESENTED_BEFORE);
    if (row.status === "credited") return { kind: "known" };
    if (row.status === "lapsed") return refused("the payment was never made, and has expired");
    lookupLimit.admit(accountId);
    return arrivals.look(id, requestId);
  }

  /** Skips those that a request is waiting for. */
  async function lookForSome(): Promise<void> {
    const some = authorizations.open(last, CHECKED_PER_PASS);
    for (const one of some) {
      if (stopping.signal.aborted) return;
      last = one;
      if (!flights.has(keyOf(one.id))) await arrivals.look(one.id);
    }
    if (some.length < CHECKED_PER_PASS) last = null;
  }

  async function goOnLooking(): Promise<void> {
    while (!stopping.signal.aborted) {
      await lookForSome().catch((err) => {
        if (!stopping.signal.aborted) log.error({ err }, "looking for signed payments failed; it will be retried");
      });
      await waitFor(checkEveryMs, stopping.signal).catch(() => undefined);
    }
  }

  return {
    take,
    countByStatus: authorizations.countByStatus,
    prune: (limit) => authorizations.prune(clock.now(), limit),
    run() {
      looking = goOnLooking();
    },
    async stop() {
      const reason = new AppError("internal_error", "the host is stopping; try again", { status: 503 });
      stopping.abort(reason);
      stopped.reject(reason);
      await Promise.allSettled([looking, ...flights.values().map(({ payment }) => payment)]);
    },
  };
}

const PRESENTED_BEFORE = "this payment was presented before";
const BUSY = "too many payments are being settled at once; present it again";

const refused = (reason: string, retryAfterSeconds?: number): Refusal => ({
  kind: "refused",
  reason,
  ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
});

const keyOf = ({ network, payer, nonce }: AuthorizationId): string => `${network} ${payer} ${nonce}`;

function idOf({ network, payload }: SignedPayment): AuthorizationId {
  const { from, nonce } = payload.authorization;
  return { network, payer: from.toLowerCase() as AuthorizationId["payer"], nonce: nonce.toLowerCase() };
}
