import { NETWORKS, type NetworkName } from "../chain/networks.ts";
import { isoTime } from "../lib/clock.ts";
import { CURRENCY, formatMoney, type Micros, shortMoney } from "../lib/money.ts";
import type { Invoice } from "./schema.ts";

export const CENT: Micros = 10_000n;

/** What an invoice must cover, rounded up to a cent; `exactly` where somebody asked for that amount. */
export interface Need {
  least: Micros;
  exactly: boolean;
}

export const toCents = (amount: Micros): Micros => ((amount + CENT - 1n) / CENT) * CENT;

/** Whether an open invoice may be quoted for this need: enough, and not so much that the payer would wonder. */
export function fits(invoice: Invoice, { least, exactly }: Need): boolean {
  const most = exactly ? toCents(least) + CENT - 1n : 2n * least + CENT;
  return invoice.amount >= least && invoice.amount <= most;
}

/** The one that is farthest from the need. */
export function leastFitting(open: readonly Invoice[], { least }: Need): Invoice | undefined {
  const distance = ({ amount }: Invoice): Micros => (amount > least ? amount - least : least - amount);
  return open.toSorted((a, b) => Number(distance(b) - distance(a)))[0];
}

/** The `x402` object of a 402 (api.md section 7), and one option for each network, the preferred one first. */
export function quoteOf(invoice: Invoice, networks: readonly NetworkName[], first?: NetworkName) {
  const amount = formatMoney(invoice.amount);
  const options = networks.map((network) => {
    const { chainId, asset } = NETWORKS[network];
    return { network, chainId, asset, recipient: invoice.payTo, amount, currency: CURRENCY };
  });
  return {
    ...(options.find(({ network }) => network === first) ?? options[0]),
    invoiceId: invoice.invoiceId,
    expiresAt: isoTime(invoice.expiresAt),
    options,
  };
}

/** What an invoice's amount follows from; nothing was asked for, or nothing is missing, where it is zero. */
export interface Wish {
  asked: Micros;
  missing: Micros;
  minimumTopUp: Micros;
}

/** Why somebody who asked for 0.50 is to pay 1.005715: the minimum, and the digits by which the payment is known. */
export function explainAmount(amount: Micros, { asked, missing, minimumTopUp }: Wish): string {
  const mark = amount % CENT;
  const cents = amount - mark;
  const base = (why: string) => `${shortMoney(cents)}, ${why},`;
  const asAsked = asked > 0n ? ` (${shortMoney(asked)} was asked for)` : "";
  const marked = `and ${shortMoney(mark)} that marks the payment as this account's`;
  if (asked > 0n && cents === toCents(asked)) {
    return `${base(cents === asked ? "as asked for" : `the ${shortMoney(asked)} asked for, to a cent`)} ${marked}`;
  }
  if (cents === toCents(minimumTopUp)) return `${base(`the least top-up here${asAsked}`)} ${marked}`;
  if (cents === toCents(missing)) return `${base("what is missing, to a cent")} ${marked}`;
  return `${base(`as an open quote of this account has it${asAsked}`)} ${marked}`;
}
