import { randomInt } from "node:crypto";
import type { Address, NetworkName } from "../chain/networks.ts";
import { AppError } from "../lib/app-error.ts";
import { HOUR_MS } from "../lib/calendar.ts";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import { CURRENCY, formatMoney, type Micros } from "../lib/money.ts";
import type { Store } from "../storage/store.ts";
import type { Heads } from "./heads.ts";
import { invoiceQueries } from "./invoice-queries.ts";
import { isSameAddress } from "./lost-wallet.ts";
import type { Payment } from "./payment.ts";
import { CENT, explainAmount, fits, leastFitting, type Need, quoteOf, toCents } from "./quote.ts";
import type { Invoice } from "./schema.ts";

const LIFE_MS = 24 * HOUR_MS;
/** For this long an amount identifies one account, which is credited for it even if the invoice has expired. */
export const RECENT_MS = 30 * LIFE_MS;
const MAX_OPEN = 3;
/** A cent has only 9,999 amounts for all accounts together: none may take them all. */
const MAX_UNPAID_PER_HOUR = 100;
const TRIES_PER_CENT = 100n;

/** What a 402 adds for x402 clients, for an account that lacks `least`. Never throws. */
export type Advertise = (
  accountId: string,
  least: Micros,
  reason: string,
) => Promise<{ body: Record<string, unknown>; headers: Record<string, string>; hint: string }>;

export interface InvoiceParts {
  store: Store;
  clock: Clock;
  balanceOf(accountId: string): Micros;
  /** What is taken of the next payment before it counts. */
  owedBy(accountId: string): Micros;
  recipient: Address;
  /** The configured networks, in the order offered. */
  networks: readonly NetworkName[];
  heads: Pick<Heads, "all">;
  minimumTopUp: Micros;
  /** The console's address, where a person tops up. */
  topUpAt(): string;
  /** Whether no node answered its last call: quotes are still made, but say so. */
  isCutOff(): boolean;
  /** What a 402 adds for x402 clients. */
  advertise: Advertise;
}

/** What a 402 asks for, and why. */
export interface Wanted {
  /** The reason for the 402, in ASCII. */
  reason: string;
  /** Whether to add how to pay, for callers that have not paid yet. */
  tellHow?: true;
  retryAfterSeconds?: number | undefined;
  /** The amount that a top-up asked for: the quote is for exactly these cents. */
  amount?: Micros | undefined;
  /** What the balance lacks, with what is owed. */
  missing?: Micros | undefined;
  /** Listed first; otherwise the first configured network is. */
  network?: NetworkName | undefined;
  /** Quoted again while it is open. */
  invoiceId?: string | undefined;
}

export interface Invoices {
  /**
   * Throws `payment_required` with a quote if the account's balance is below `minimum` (docs/contract/billing.md,
   * Quotes) or if `payment` was refused. Do not call it in a transaction: the invoice must outlive the refusal.
   */
  requireBalance(accountId: string, minimum: Micros, payment: Payment | null): Promise<void>;
  /** The `payment_required` to throw, with the account's open invoice. Throws `rate_limited` for too many new ones. */
  quote(accountId: string, wanted: Wanted): Promise<AppError>;
  /** Invoices of this amount, open or of the last 30 days, newest first. */
  withAmount(amount: Micros): Invoice[];
  /** Marks it as paid. Does nothing if it is paid already. */
  pay(invoiceId: string): void;
  /** Reverses `pay`: it can be paid again until it expires. */
  unpay(invoiceId: string): void;
  countOpen(): number;
  /** Marks invoices that have expired. */
  expire(): void;
  /** Removes at most `limit` unpaid invoices whose amount is free again. Returns whether there may be more. */
  prune(limit: number): boolean;
}

/**
 * The x402 quotes. An invoice's amount is what is missing, rounded up to a cent, plus 1 to 9,999 micro-USDC such that
 * no other open or recent invoice has this amount: it alone identifies who paid (docs/contract/billing.md, Quotes).
 */
export function createInvoices(parts: InvoiceParts): Invoices {
  const { store, clock, balanceOf, owedBy, recipient, networks, heads, minimumTopUp, advertise } = parts;
  const rows = invoiceQueries(store.db);
  const withAmount = (amount: Micros) => rows.withAmount(amount, clock.now() - RECENT_MS);

  function freeAmount(least: Micros): Micros {
    for (let tries = 0n; ; tries++) {
      // Goes on to the next cent if this one is crowded; that adds a few cents at most.
      const cents = toCents(least) + (tries / TRIES_PER_CENT) * CENT;
      const amount = cents + BigInt(randomInt(1, Number(CENT)));
      if (withAmount(amount).length === 0) return amount;
    }
  }

  /** Throws `rate_limited` if the account has too many unpaid new quotes. */
  function refuseTooMany(accountId: string): void {
    if (rows.countUnpaid(accountId, clock.now() - HOUR_MS) < MAX_UNPAID_PER_HOUR) return;
    throw new AppError(
      "rate_limited",
      "too many unpaid quotes of different amounts; pay an open one, or try again later",
      { retryAfterSeconds: 600 },
    );
  }

  /** The account's open invoice for what is needed, or a new one. Never more than three are open. */
  async function invoiceFor(accountId: string, need: Need, preferred: string | undefined): Promise<Invoice> {
    const openOf = () => rows.openOf(accountId, clock.now());
    const open = openOf();
    const good = open.find(({ invoiceId }) => invoiceId === preferred) ?? open.find((one) => fits(one, need));
    if (good) return good;
    // Checked before any node is called: a refusal should cost nothing.
    refuseTooMany(accountId);
    const known = await heads.all();
    // Another request of the account may have opened one meanwhile.
    return store.transaction(() => openOf().find((one) => fits(one, need)) ?? openInvoice(accountId, need, known));
  }

  function openInvoice(accountId: string, need: Need, heads: string): Invoice {
    refuseTooMany(accountId);
    const now = clock.now();
    const open = rows.openOf(accountId, now);
    const evicted = open.length < MAX_OPEN ? undefined : leastFitting(open, need);
    if (evicted) rows.expire(evicted.invoiceId);
    const amount = freeAmount(need.least);
    return rows.insert({
      invoiceId: newId("inv"),
      accountId,
      amount,
      heads,
      payTo: recipient,
      createdAt: now,
      expiresAt: now + LIFE_MS,
    });
  }

  async function quote(accountId: string, wanted: Wanted): Promise<AppError> {
    const { reason, retryAfterSeconds, amount = 0n, missing = 0n, network, invoiceId } = wanted;
    let least = minimumTopUp;
    for (const needed of [amount, missing]) if (needed > least) least = needed;
    const invoice = await invoiceFor(accountId, { least, exactly: amount > 0n }, invoiceId);
    const advertised = await advertise(accountId, least, reason);
    const why = explainAmount(invoice.amount, { asked: amount, missing, minimumTopUp });
    const message = wanted.tellHow ? `${reason}: ${howToPay(invoice.amount, why, advertised.hint)}` : reason;
    return new AppError("payment_required", message, {
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      headers: advertised.headers,
      body: { x402: quoteOf(invoice, networks, network), ...advertised.body },
    });
  }

  /** The ways to a balance: for a program, perhaps for a client of the protocol, and for a person. */
  function howToPay(amount: Micros, why: string, hint: string): string {
    const pay = `pay exactly ${formatMoney(amount)} ${CURRENCY}, as described in x402, and repeat the request with the transaction in X-PAYMENT`;
    const later = parts.isCutOff()
      ? ". No network can be reached from here right now: the payment is credited once one can be"
      : "";
    const person = `A person tops up at ${parts.topUpAt()} or asks the host's operator for credit`;
    return `${pay}. The amount is ${why}${later}. ${hint === "" ? "" : `${hint}. `}${person}`;
  }

  return {
    async requireBalance(accountId, minimum, payment) {
      const balance = balanceOf(accountId);
      const isMet = balance >= minimum;
      const owed = owedBy(accountId);
      const missing = isMet ? 0n : minimum - balance + owed;
      if (payment?.kind === "refused") throw await quote(accountId, { missing, ...payment });
      if (isMet) return;
      const debt = owed > 0n ? `, ${formatMoney(owed)} are owed since a payment was reversed,` : "";
      const has = `the balance is ${formatMoney(balance)} ${CURRENCY}${debt} and this needs ${formatMoney(minimum)}`;
      throw await quote(accountId, { missing, reason: has, tellHow: true });
    },
    quote,
    withAmount,
    pay(invoiceId) {
      if (rows.find(invoiceId)?.status === "paid") return;
      rows.setStatus(invoiceId, { status: "paid", paidAt: clock.now() });
    },
    unpay(invoiceId) {
      const invoice = rows.find(invoiceId);
      if (invoice?.status !== "paid") return;
      const now = clock.now();
      const mayOpen =
        invoice.expiresAt > now &&
        isSameAddress(invoice.payTo, recipient) &&
        rows.openOf(invoice.accountId, now).length < MAX_OPEN;
      rows.setStatus(invoiceId, { status: mayOpen ? "open" : "expired", paidAt: null });
    },
    countOpen: () => rows.countOpen(clock.now()),
    expire: () => store.transaction(() => rows.expireDue(clock.now())),
    prune: (limit) => store.transaction(() => rows.prune(clock.now() - RECENT_MS, limit) === limit),
  };
}
