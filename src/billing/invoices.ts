import { randomInt } from "node:crypto";
import { and, asc, eq, gt, lte } from "drizzle-orm";
import { type Address, NETWORKS, type NetworkName } from "../chain/networks.ts";
import { AppError } from "../lib/app-error.ts";
import { type Clock, isoTime } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import { CURRENCY, formatMoney, type Micros } from "../lib/money.ts";
import type { Store } from "../storage/store.ts";
import type { Payment } from "./payment.ts";
import { type Invoice, invoices } from "./table.ts";

const LIFE_MS = 24 * 60 * 60 * 1000;
const AMOUNT_APART_MS = 30 * LIFE_MS;
const MOST_OPEN = 3;
const CENT = 10_000n;

export interface InvoiceParts {
  store: Store;
  clock: Clock;
  balanceOf(accountId: string): Micros;
  recipient: Address;
  networks: readonly NetworkName[];
  minimumTopUp: Micros;
}

export interface Invoices {
  /** Throws `payment_required` with a quote when the account's balance is under `minimum` (specification, section 8). */
  requireBalance(accountId: string, minimum: Micros, payment: Payment | null): Promise<void>;
}

/**
 * The x402 quotes. An invoice's amount is what is missing, rounded up to a cent, plus 1 to 9,999 micro-USDC that no
 * other open or recent invoice has: the amount alone then names who paid (billing.md, x402 1).
 */
export function createInvoices({ store, clock, balanceOf, recipient, networks, minimumTopUp }: InvoiceParts): Invoices {
  const { db } = store;

  function isTaken(amount: Micros): boolean {
    const recent = and(eq(invoices.amount, amount), gt(invoices.createdAt, clock.now() - AMOUNT_APART_MS));
    return db.select({ invoiceId: invoices.invoiceId }).from(invoices).where(recent).limit(1).get() !== undefined;
  }

  function freeAmount(least: Micros): Micros {
    const cents = ((least + CENT - 1n) / CENT) * CENT;
    for (let step = 0n; ; step++) {
      // A crowded cent makes the next one likelier to be free; nobody pays more than a few cents above what is missing.
      const base = cents + (step / 100n) * CENT;
      const amount = base + BigInt(randomInt(1, 10_000));
      if (!isTaken(amount)) return amount;
    }
  }

  /** The account's open invoice that covers `least`, or a new one. Never more than three are open. */
  function openInvoice(accountId: string, least: Micros): Invoice {
    return store.transaction(() => {
      const now = clock.now();
      const own = and(eq(invoices.accountId, accountId), eq(invoices.status, "open"));
      db.update(invoices)
        .set({ status: "expired" })
        .where(and(own, lte(invoices.expiresAt, now)))
        .run();
      const open = db.select().from(invoices).where(own).orderBy(asc(invoices.amount)).all();
      const fitting = open.find((invoice) => invoice.amount >= least);
      if (fitting) return fitting;
      const smallest = open[0];
      if (open.length >= MOST_OPEN && smallest) {
        db.update(invoices).set({ status: "expired" }).where(eq(invoices.invoiceId, smallest.invoiceId)).run();
      }
      return db
        .insert(invoices)
        .values({
          invoiceId: newId("inv"),
          accountId,
          amount: freeAmount(least),
          status: "open",
          createdAt: now,
          expiresAt: now + LIFE_MS,
        })
        .returning()
        .get();
    });
  }

  return {
    async requireBalance(accountId, minimum, _payment) {
      const balance = balanceOf(accountId);
      if (balance >= minimum) return;
      const missing = minimum - balance;
      const invoice = openInvoice(accountId, missing > minimumTopUp ? missing : minimumTopUp);
      throw new AppError(
        "payment_required",
        `the balance is ${formatMoney(balance)} ${CURRENCY} and this needs ${formatMoney(minimum)}; pay the amount in x402`,
        { body: { x402: quoteOf(invoice, recipient, networks) } },
      );
    },
  };
}

/** The `x402` object of a 402 (api.md section 7): the first configured network, and one option for each. */
function quoteOf(invoice: Invoice, recipient: Address, networks: readonly NetworkName[]): Record<string, unknown> {
  const amount = formatMoney(invoice.amount);
  const options = networks.map((network) => {
    const { chainId, asset } = NETWORKS[network];
    return { network, chainId, asset, recipient, amount, currency: CURRENCY };
  });
  return {
    ...options[0],
    invoiceId: invoice.invoiceId,
    expiresAt: isoTime(invoice.expiresAt),
    options,
  };
}
