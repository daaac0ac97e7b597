import type { Mined, Transfer } from "../chain/chain.ts";
import { type Address, NETWORKS, type NetworkName } from "../chain/networks.ts";
import type { Micros } from "../lib/money.ts";
import type { Settled } from "./claims.ts";
import type { Due } from "./crediting.ts";
import { depthOf } from "./depth.ts";
import type { Invoice, PaymentRow } from "./schema.ts";

/** What one transfer of a mined transaction is to the appliance. */
export type Match =
  | { kind: "due"; due: Due }
  /** Credited before. */
  | { kind: "paid"; payment: PaymentRow }
  | ({ kind: "shallow"; reason: string; retryAfterSeconds: number } & Owner)
  /** In a block that was there when the only invoices of its amount were opened. */
  | ({ kind: "early" } & Owner)
  /** USDC for the recipient, and no invoice of that amount names it. */
  | { kind: "unmatched" }
  | { kind: "wrong_recipient" }
  | { kind: "bridged" }
  | { kind: "wrong_token" };

interface Owner {
  accountId: string;
  invoiceId: string | null;
}

/** What a transaction is judged by. */
export interface Known {
  network: NetworkName;
  recipient: Address;
  /** Blocks that a transfer must have, its own included. */
  confirmations: number;
  /** The invoices of an amount, newest first. */
  invoicesOf(amount: Micros): Invoice[];
  /** The transfers of this transaction that were credited already. */
  payments: readonly PaymentRow[];
  /** What a facilitator said it settled with this transaction. */
  settled: Settled | null;
}

/** Bridged USDC on Polygon. */
const USDC_E = "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174";
/** How much a chain's clock and this host's may differ. */
const CLOCKS_APART_MS = 10 * 60 * 1000;
const SETTLED_DEPTH = 1n;

/** Judges every transfer of a transaction on its own (billing.md, x402 2). Transfers that concern nobody here are left out. */
export function matchTransfers(mined: Mined, known: Known): Match[] {
  const ours = mined.transfers.filter((transfer) => isOurs(transfer, known));
  // A transaction may settle several signatures of one payer: each is for one transfer.
  const isPaid = ({ logIndex }: Transfer) => known.payments.some((payment) => payment.logIndex === logIndex);
  const settled = ours.find((transfer) => isSettled(transfer, known.settled) && !isPaid(transfer));
  return mined.transfers.flatMap((transfer) => {
    if (ours.includes(transfer)) return matchOne(transfer, transfer === settled ? known.settled : null, mined, known);
    const kind = kindOfForeign(transfer, known);
    return kind === null ? [] : { kind };
  });
}

/** USDC for the recipient. */
export const isOurs = (
  { token, to }: Transfer,
  { network, recipient }: Pick<Known, "network" | "recipient">,
): boolean => same(token, NETWORKS[network].asset) && same(to, recipient);

const isSettled = ({ from, amount }: Transfer, settled: Settled | null): boolean =>
  settled !== null && same(from, settled.payer) && amount === settled.amount;

function kindOfForeign({ token, to }: Transfer, { network, recipient }: Known) {
  if (same(token, NETWORKS[network].asset)) return "wrong_recipient";
  if (!same(to, recipient)) return null;
  return same(token, USDC_E) ? "bridged" : "wrong_token";
}

function matchOne(transfer: Transfer, settled: Settled | null, mined: Mined, known: Known): Match {
  const before = known.payments.find(({ logIndex }) => logIndex === transfer.logIndex);
  if (before && before.status !== "reversed") return { kind: "paid", payment: before };
  if (before && isSameTransfer(transfer, before))
    return dueWhenDeep({ transfer, accountId: before.accountId, invoiceId: before.invoiceId, before }, mined, known);
  if (settled) return dueWhenDeep({ transfer, accountId: settled.accountId, invoiceId: null, before }, mined, known);
  // Not those of an address that was this host's before: whoever has its key now could pay himself.
  const invoices = known.invoicesOf(transfer.amount).filter(({ payTo }) => same(payTo, transfer.to));
  const invoice = invoices.find((one) => isAfter(mined, one, known.network));
  if (invoice) {
    const { accountId, invoiceId } = invoice;
    return dueWhenDeep({ transfer, accountId, invoiceId, before }, mined, known);
  }
  const [newest] = invoices;
  if (!newest) return { kind: "unmatched" };
  return { kind: "early", accountId: newest.accountId, invoiceId: newest.invoiceId };
}

function dueWhenDeep(due: Due, mined: Mined, { network, confirmations }: Known): Match {
  const { accountId, invoiceId, transfer } = due;
  // What a facilitator settled was promised already: it is rechecked until it is final.
  if (invoiceId === null && mined.confirmations >= SETTLED_DEPTH) return { kind: "due", due };
  const depth = depthOf(network, confirmations, transfer.amount, mined);
  if (depth.isEnough) return { kind: "due", due };
  const { reason, retryAfterSeconds } = depth;
  return { kind: "shallow", accountId, invoiceId, reason, retryAfterSeconds };
}

/** Whether the block came after the invoice: behind the head of that moment, or by time where no node named one. */
function isAfter({ blockNumber, blockTimeMs }: Mined, invoice: Invoice, network: NetworkName): boolean {
  const head = (JSON.parse(invoice.heads) as Partial<Record<NetworkName, string>>)[network];
  if (head !== undefined) return blockNumber > BigInt(head);
  return blockTimeMs >= invoice.createdAt - CLOCKS_APART_MS;
}

/** A payer that is a contract may transfer something else when a reorganisation has its transaction mined again. */
export const isSameTransfer = ({ amount, from }: Transfer, credited: PaymentRow): boolean =>
  amount === credited.amount && same(from, credited.payer);

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
