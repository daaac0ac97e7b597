import { randomInt } from "node:crypto";
import type { Address, NetworkName } from "../chain/networks.ts";
import { AppError } from "../lib/app-error.ts";
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

const HOUR_MS = 60 * 60 * 1000;
const LIFE_MS = 24 * HOUR_MS;
/** So long an amount names its account alone, and who pays it is credited, whatever became of the invoice. */
const RECENT_MS = 30 * LIFE_MS;
const MOST_OPEN = 3;
/** A cent has 9,999 amounts, for everybody: nobody may take them all. */
const MOST_UNPAID_AN_HOUR = 100;
const TRIES_A_CENT = 100n;

/** What a 402 adds for the x402 protocol's own clients, of an account that lacks `least`. Never throws. */
export type Advertise = (
  accountId: string,
  least: Micros,
  reason: string,
) => Promise<{ body: Record<string, unknown>; headers: Record<string, string> }>;

export interface InvoiceParts {
  store: Store;
  clock: Clock;
  balanceOf(accountId: string): Micros;
  recipient: Address;
  /** The configured networks, in the order in which they are offered. */
  networks: readonly NetworkName[];
  heads: Pick<Heads, "all">;
  minimumTopUp: Micros;
  /** Where a person tops up: the console's address. */
  topUpAt(): string;
  /** Whether no node answered when it was asked last: a quote goes out all the same, and says so. */
  isCutOff(): boolean;
  /** What a 402 tells the x402 protocol's own clients. */
  advertise: Advertise;
}

/** What a 402 says and asks for. */
export interface Wanted {
  /** Why it is a 402, in ASCII. */
  reason: string;
  /** Whether to say behind the reason how this is paid, for who has not paid yet. */
  tellHow?: true;
  retryAfterSeconds?: number | undefined;
  /** What a top-up asked for: the quote is for these cents exactly. */
  amount?: Micros | undefined;
  /** What a balance lacks. */
  missing?: Micros | undefined;
  /** Named first; else the first that is configured. */
  network?: NetworkName | undefined;
  /** Quoted again while it is open. */
  invoiceId?: string | undefined;
}

export interface Invoices {
  /**
   * Throws `payment_required` with a quote when the account's balance is under `minimum` (specification, section 8), and
   * whenever `payment` was refused, then with its reason. Not to be called in a transaction: the quote outlives the refusal.
   */
  requireBalance(accountId: string, minimum: Micros, payment: Payment | null): Promise<void>;
  /** The `payment_required` to throw, with the account's open invoice. Throws `rate_limited` for too many new ones. */
  quote(accountId: string, wanted: Wanted): Promise<AppError>;
  /** Those whose amount this is, open or of the last 30 days, newest first. */
  withAmount(amount: Micros): Invoice[];
  /** Notes that a transfer has paid it; nothing changes for one that is paid already. */
  pay(invoiceId: string): void;
  /** Takes that back: it can be paid again while its time lasts. */
  unpay(invoiceId: string): void;
  countOpen(): number;
  /** Marks those whose time is over. */
  expire(): void;
  /** Forgets those that nobody paid and whose amount is free again. */
  prune(): void;
}

/**
 * The x402 quotes. An invoice's amount is what is missing, rounded up to a cent, plus 1 to 9,999 micro-USDC that no
 * other open or recent invoice has: the amount alone then names who paid (billing.md, x402 1).
 */
export function createInvoices(parts: InvoiceParts): Invoices {
  const { store, clock, balanceOf, recipient, networks, heads, minimumTopUp, advertise } = parts;
  const rows = invoiceQueries(store.db);
  const withAmount = (amount: Micros) => rows.withAmount(amount, clock.now() - RECENT_MS);

  function freeAmount(least: Micros): Micros {
    for (let tries = 0n; ; tries++) {
      // A crowded cent makes the next one likelier to be free; nobody pays more than a few cents above what is missing.
      const cents = toCents(least) + (tries / TRIES_A_CENT) * CENT;
      const amount = cents + BigInt(randomInt(1, Number(CENT)));
      if (withAmount(amount).length === 0) return amount;
    }
  }

  /** Throws `rate_limited` where the account has had its new quotes for now. */
  function refuseTooMany(accountId: string): void {
    if (rows.countUnpaid(accountId, clock.now() - HOUR_MS) < MOST_UNPAID_AN_HOUR) return;
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
    // Before a node is asked anything: a refusal costs nobody a call.
    refuseTooMany(accountId);
    const known = await heads.all();
    // Another request of the account may have been here meanwhile.
    return store.transaction(() => openOf().find((one) => fits(one, need)) ?? openInvoice(accountId, need, known));
  }

  function openInvoice(accountId: string, need: Need, heads: string): Invoice {
    refuseTooMany(accountId);
    const now = clock.now();
    const open = rows.openOf(accountId, now);
    const evicted = open.length < MOST_OPEN ? undefined : leastFitting(open, need);
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
    const message = wanted.tellHow ? `${reason}: ${howToPay(invoice.amount, why)}` : reason;
    return new AppError("payment_required", message, {
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      headers: advertised.headers,
      body: { x402: quoteOf(invoice, networks, network), ...advertised.body },
    });
  }

  /** For a program, and for the person behind it: the two ways to a balance. */
  function howToPay(amount: Micros, why: string): string {
    const pay = `pay exactly ${formatMoney(amount)} ${CURRENCY}, as x402 says, and repeat the request with the transaction in X-PAYMENT`;
    const later = parts.isCutOff()
      ? ". No network can be reached from here now: a payment is credited once one can"
      : "";
    const person = `A person tops up at ${parts.topUpAt()} or asks who runs this host for credit`;
    return `${pay}. The amount is ${why}${later}. ${person}`;
  }

  return {
    async requireBalance(accountId, minimum, payment) {
      const balance = balanceOf(accountId);
      const missing = minimum - balance;
      if (payment?.kind === "refused") throw await quote(accountId, { missing, ...payment });
      if (missing <= 0n) return;
      const has = `the balance is ${formatMoney(balance)} ${CURRENCY} and this needs ${formatMoney(minimum)}`;
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
        rows.openOf(invoice.accountId, now).length < MOST_OPEN;
      rows.setStatus(invoiceId, { status: mayOpen ? "open" : "expired", paidAt: null });
    },
    countOpen: () => rows.countOpen(clock.now()),
    expire: () => store.transaction(() => rows.expireDue(clock.now())),
    prune: () => store.transaction(() => rows.forget(clock.now() - RECENT_MS)),
  };
}
