import { NETWORKS, type NetworkName } from "../chain/networks.ts";
import { isoTime } from "../lib/clock.ts";
import { CURRENCY, formatMoney, type Micros, shortMoney } from "../lib/money.ts";
import type { Invoice } from "./schema.ts";

export const CENT: Micros = 10_000n;

/** What an invoice must cover, rounded up to a cent; `exactly` if the caller asked for that amount. */
export interface Need {
  least: Micros;
  exactly: boolean;
}

export const toCents = (amount: Micros): Micros => ((amount + CENT - 1n) / CENT) * CENT;

/** Whether an open invoice may be quoted for this need: enough, but not surprisingly much more. */
export function fits(invoice: Invoice, { least, exactly }: Need): boolean {
  const max = exactly ? toCents(least) + CENT - 1n : 2n * least + CENT;
  return invoice.amount >= least && invoice.amount <= max;
}

/** The invoice whose amount is furthest from the need. */
export function leastFitting(open: readonly Invoice[], { least }: Need): Invoice | undefined {
  const distance = ({ amount }: Invoice): Micros => (amount > least ? amount - least : least - amount);
  return open.toSorted((a, b) => Number(distance(b) - distance(a)))[0];
}

/**
 * The `x402` object of a 402 (docs/contract/api.md, Payments), and one option for each network, the preferred one
 * first.
 */
export function quoteOf(invoice: Invoice, networks: readonly NetworkName[], first?: NetworkName) {
  const amount = formatMoney(invoice.amount);
  const inOrder = networks.toSorted((a, b) => Number(b === first) - Number(a === first));
  const options = inOrder.map((network) => {
    const { chainId, asset } = NETWORKS[network];
    return { network, chainId, asset, recipient: invoice.payTo, amount, currency: CURRENCY };
  });
  return {
    ...options[0],
    invoiceId: invoice.invoiceId,
    expiresAt: isoTime(invoice.expiresAt),
    options,
  };
}

/** What an invoice's amount is based on; `asked` and `missing` are zero if they do not apply. */
export interface AmountReason {
  asked: Micros;
  missing: Micros;
  minimumTopUp: Micros;
}

/**
 * Explains why a caller that asked for 0.50 must pay 1.005715: the minimum top-up, and the digits that identify the
 * payment.
 */
export function explainAmount(amount: Micros, { asked, missing, minimumTopUp }: AmountReason): string {
  const mark = amount % CENT;
  const cents = amount - mark;
  const base = (why: string) => `${shortMoney(cents)}, ${why},`;
  const asAsked = asked > 0n ? ` (${shortMoney(asked)} was asked for)` : "";
  const marked = `and ${shortMoney(mark)} that identifies the payment as this account's`;
  if (asked > 0n && cents === toCents(asked)) {
    return `${base(cents === asked ? "as asked for" : `the ${shortMoney(asked)} asked for, to a cent`)} ${marked}`;
  }
  if (cents === toCents(minimumTopUp)) return `${base(`the minimum top-up here${asAsked}`)} ${marked}`;
  if (cents === toCents(missing)) return `${base("what is missing, to a cent")} ${marked}`;
  return `${base(`the amount of an open quote of this account${asAsked}`)} ${marked}`;
}
