import type { NetworkName } from "../../chain/networks.ts";
import { AppError } from "../../lib/app-error.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { waitFor } from "../../lib/wait-for.ts";
import { OUTGOING } from "../../limits/outgoing.ts";
import { createSlots } from "../../limits/slots.ts";
import { createLookUps } from "../look-ups.ts";
import { createNewTransactionLimit } from "../new-transactions.ts";
import type { Payment, Refusal } from "../payment.ts";
import type { AuthorizationRow } from "../schema.ts";
import type { Arrivals } from "./arrivals.ts";
import type { AuthorizationId, Authorizations } from "./authorizations.ts";
import type { Facilitator } from "./facilitator.ts";
import { parseSignedPayment, refusalOf, type SignedPayment, signedPaymentHeader } from "./signed-payment.ts";
import { ASKED, facilitatorRequest, type Offer, paidHeaders } from "./x402-protocol.ts";

export interface FacilitatedPaymentParts {
  clock: Clock;
  log: Log;
  facilitator: Facilitator;
  authorizations: Authorizations;
  arrivals: Arrivals;
  networks: readonly NetworkName[];
  headOf(network: NetworkName): Promise<bigint | null>;
  offer: () => Offer;
}

export interface FacilitatedPayments {
  /**
   * Has the signed payment that a request brings settled, and credits it once the chain shows it (billing.md, x402 7).
   * Null where it brings none. Throws `invalid_request` for what is none, and `rate_limited` for too many new ones, or
   * too many looks at the same.
   * Takes as long as a facilitator does, up to 50 s.
   */
  take(accountId: string, headers: Headers): Promise<Payment | null>;
  /** Forgets those that were decided long ago. */
  prune(): void;
  /** Looks on the chain for what was given to the facilitator and has not arrived, from now on. */
  run(): void;
  stop(): Promise<void>;
}

/** The facilitator's node may be ahead of this host's. */
const SETTLED_LIMIT_MS = 3_000;
/** It had its time while nothing was heard. */
const SILENT_LIMIT_MS = 1_000;
const LOOK_EVERY_MS = 15_000;
const OPEN_A_LOOK = 50;

interface Flight {
  accountId: string;
  payment: Promise<Payment>;
}

/**
 * Payments that a facilitator puts on the chain. Its word is never enough: the chain must show that this signature was
 * used. What was given away is noted before, so that a facilitator that dies, or says nothing, loses nobody's money.
 */
export function createFacilitatedPayments(parts: FacilitatedPaymentParts): FacilitatedPayments {
  const { clock, log, facilitator, authorizations, arrivals, networks, headOf, offer } = parts;
  const newTransactions = createNewTransactionLimit(clock);
  const lookUps = createLookUps(clock);
  // A facilitator takes its time: nobody's payments keep it, and the connections to it, from another's.
  const { connections } = OUTGOING.facilitator;
  const places = createSlots({ total: connections, maxPerOwner: connections / 4 });
  const flights = new Map<string, Flight>();
  const stopping = new AbortController();
  const stopped = Promise.withResolvers<never>();
  stopped.promise.catch(() => undefined);
  let looking: Promise<void> = Promise.resolve();

  /** A facilitator may take longer than a stop: what it did is found on the chain after the next start. */
  const unlessStopped = <T>(answer: Promise<T>): Promise<T> => Promise.race([answer, stopped.promise]);

  async function take(accountId: string, headers: Headers): Promise<Payment | null> {
    const brought = signedPaymentHeader(headers);
    if (brought === null) return null;
    const signed = parseSignedPayment(brought.version, brought.header, networks);
    const id = idOf(signed);
    const key = keyOf(id);
    const payment = () => pay(accountId, id, signed).finally(() => flights.delete(key));
    const flight = flights.get(key) ?? { accountId, payment: payment() };
    flights.set(key, flight);
    // Once it is on the chain anybody can read a signature there and present it: it is his who presented it first.
    return flight.accountId === accountId ? flight.payment : refused(PRESENTED_BEFORE);
  }

  async function pay(accountId: string, id: AuthorizationId, signed: SignedPayment): Promise<Payment> {
    const before = authorizations.find(id);
    const payment = before ? await payAgain(accountId, id, before) : await payFirst(accountId, id, signed);
    if (payment.kind !== "credited") return payment;
    const txHash = authorizations.find(id)?.txHash ?? "";
    return { ...payment, headers: { ...payment.headers, ...paidHeaders(signed, txHash) } };
  }

  async function payFirst(accountId: string, id: AuthorizationId, signed: SignedPayment): Promise<Payment> {
    const refusal = refusalOf(signed, offer().recipient, clock.now());
    if (refusal !== null) return refused(refusal);
    newTransactions.admit(accountId, keyOf(id));
    if (places.acquire(accountId) !== "taken") return refused(BUSY, 5);
    try {
      return await settleFirst(accountId, id, signed);
    } finally {
      places.release(accountId);
    }
  }

  async function settleFirst(accountId: string, id: AuthorizationId, signed: SignedPayment): Promise<Payment> {
    const { network } = id;
    // Read before the signature is given away: what uses it is in a later block.
    const head = await headOf(network);
    if (head === null) return refused(`no payment on ${network} can be verified right now; nothing was paid`, 5);
    const request = facilitatorRequest(signed, offer());
    const verdict = await unlessStopped(facilitator.verify(request));
    if (verdict.kind === "silent") {
      log.warn({ network }, "the facilitator does not verify a payment");
      return refused("the facilitator does not answer; nothing was paid", 10);
    }
    if (verdict.kind === "invalid") return refused(`the facilitator refuses the payment: ${verdict.reason}`);

    const validBefore = Number(signed.payload.authorization.validBefore) * 1000;
    authorizations.add(id, { accountId, amount: ASKED, head: Number(head), validBefore, createdAt: clock.now() });
    const settlement = await unlessStopped(facilitator.settle(request));
    switch (settlement.kind) {
      case "settled":
        authorizations.change(id, { txHash: settlement.txHash });
        return arrivals.await(id, SETTLED_LIMIT_MS, stopping.signal);
      case "failed":
        authorizations.change(id, { status: "failed" });
        return refused(`the facilitator could not settle the payment: ${settlement.reason}`);
      case "silent":
        log.warn(
          { network },
          "the facilitator does not say whether it settled a payment: it is looked for on the chain",
        );
        return arrivals.await(id, SILENT_LIMIT_MS, stopping.signal);
    }
  }

  /** It is never given to a facilitator again: it is on the chain, or may still get there, or can do so no more. */
  async function payAgain(accountId: string, id: AuthorizationId, row: AuthorizationRow): Promise<Payment> {
    if (row.accountId !== accountId) return refused(PRESENTED_BEFORE);
    if (row.status === "credited") return { kind: "known" };
    if (row.status === "lapsed") return refused("the payment was never made, and has expired");
    lookUps.admit(accountId);
    return arrivals.look(id);
  }

  /** Those that a request waits for are its own to look for. */
  async function lookForAll(): Promise<void> {
    for (const { id } of authorizations.open(networks, OPEN_A_LOOK)) {
      if (stopping.signal.aborted) return;
      if (!flights.has(keyOf(id))) await arrivals.look(id);
    }
  }

  async function goOnLooking(): Promise<void> {
    while (!stopping.signal.aborted) {
      await lookForAll().catch((err) => {
        if (!stopping.signal.aborted) log.error({ err }, "signed payments were not looked for; it is tried again");
      });
      await waitFor(LOOK_EVERY_MS, stopping.signal).catch(() => undefined);
    }
  }

  return {
    take,
    prune: () => authorizations.prune(clock.now()),
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
const BUSY = "as many payments are being settled as can be at once; present it again";

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
