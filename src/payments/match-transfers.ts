import type { Mined, Transfer } from "../chain/chain.ts";
import { type Address, NETWORKS, type NetworkName } from "../chain/networks.ts";
import type { Micros } from "../lib/money.ts";
import type { Settled } from "./claims.ts";
import type { PendingCredit } from "./credits.ts";
import { depthOf } from "./depth.ts";
import type { Invoice, PaymentRow } from "./schema.ts";

/** What one transfer of a mined transaction means to this host. */
export type Match =
  | { kind: "due"; due: PendingCredit }
  /** Credited before. */
  | { kind: "paid"; payment: PaymentRow }
  | ({ kind: "shallow"; reason: string; retryAfterSeconds: number } & Owner)
  /** In a block from before the invoices of its amount. */
  | ({ kind: "early" } & Unclaimed & Owner)
  /** USDC to the recipient, but no invoice of that amount names it. */
  | ({ kind: "unmatched" } & Unclaimed)
  | { kind: "wrong_recipient" }
  | { kind: "bridged" }
  | { kind: "wrong_token" };

interface Unclaimed {
  transfer: Transfer;
  /** A reversed one of another that was in its place. */
  before: PaymentRow | undefined;
}

interface Owner {
  accountId: string;
  invoiceId: string | null;
}

/** What a transaction is matched against. */
export interface MatchContext {
  network: NetworkName;
  recipient: Address;
  /** Confirmations that a transfer needs, its own block included. */
  confirmations: number;
  /** The invoices of an amount, newest first. */
  invoicesOf(amount: Micros): Invoice[];
  /** The transfers of this transaction that are already credited. */
  payments: readonly PaymentRow[];
  /** What a facilitator says it settled with this transaction. */
  settled: Settled | null;
}

/** Bridged USDC on Polygon. */
const USDC_E = "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174";
/** How far a chain's clock and this host's may differ. */
const MAX_CLOCK_SKEW_MS = 10 * 60 * 1000;
const SETTLED_DEPTH = 1n;

/**
 * Matches each transfer of a transaction by itself (docs/contract/billing.md, Proofs). Leaves out transfers that do not
 * concern this host.
 */
export function matchTransfers(mined: Mined, known: MatchContext): Match[] {
  const ours = mined.transfers.filter((transfer) => isOurs(transfer, known));
  // A transaction may settle several signatures of one payer, each with its own transfer.
  const settled = ours.find((transfer) => isSettled(transfer, known.settled) && !creditOf(transfer, known));
  return mined.transfers.flatMap((transfer) => {
    if (ours.includes(transfer)) return matchOne(transfer, transfer === settled ? known.settled : null, mined, known);
    const kind = kindOfForeign(transfer, known);
    return kind === null ? [] : { kind };
  });
}

/** Whether it is USDC to the recipient. */
export const isOurs = (
  { token, to }: Transfer,
  { network, recipient }: Pick<MatchContext, "network" | "recipient">,
): boolean => same(token, NETWORKS[network].asset) && same(to, recipient);

const isSettled = ({ from, amount }: Transfer, settled: Settled | null): boolean =>
  settled !== null && same(from, settled.payer) && amount === settled.amount;

function kindOfForeign({ token, to }: Transfer, { network, recipient }: MatchContext) {
  if (same(token, NETWORKS[network].asset)) return "wrong_recipient";
  if (!same(to, recipient)) return null;
  return same(token, USDC_E) ? "bridged" : "wrong_token";
}

const rowAt = ({ logIndex }: Transfer, { payments }: MatchContext): PaymentRow | undefined =>
  payments.find((payment) => payment.logIndex === logIndex);

/** The row that says whose the transfer is: its own, not a reversed one of another that was in its place before. */
function creditOf(transfer: Transfer, known: MatchContext): PaymentRow | undefined {
  const row = rowAt(transfer, known);
  return row && (row.status !== "reversed" || isSameTransfer(transfer, row)) ? row : undefined;
}

function matchOne(transfer: Transfer, settled: Settled | null, mined: Mined, known: MatchContext): Match {
  const before = rowAt(transfer, known);
  const credit = creditOf(transfer, known);
  if (credit && credit.status !== "reversed") return { kind: "paid", payment: credit };
  if (credit)
    return dueWhenDeep({ transfer, accountId: credit.accountId, invoiceId: credit.invoiceId, before }, mined, known);
  if (settled) return dueWhenDeep({ transfer, accountId: settled.accountId, invoiceId: null, before }, mined, known);
  // Not those of an address that was this host's before: whoever has its key now could pay himself.
  const invoices = known.invoicesOf(transfer.amount).filter(({ payTo }) => same(payTo, transfer.to));
  const invoice = invoices.find((one) => isAfter(mined, one, known.network));
  if (invoice) {
    const { accountId, invoiceId } = invoice;
    return dueWhenDeep({ transfer, accountId, invoiceId, before }, mined, known);
  }
  const [newest] = invoices;
  if (!newest) return { kind: "unmatched", transfer, before };
  return { kind: "early", transfer, before, accountId: newest.accountId, invoiceId: newest.invoiceId };
}

function dueWhenDeep(due: PendingCredit, mined: Mined, { network, confirmations }: MatchContext): Match {
  const { accountId, invoiceId, transfer } = due;
  // A facilitator's payment was already accepted; it is rechecked until it is final.
  if (invoiceId === null && mined.confirmations >= SETTLED_DEPTH) return { kind: "due", due };
  const depth = depthOf(network, confirmations, transfer.amount, mined);
  if (depth.isEnough) return { kind: "due", due };
  const { reason, retryAfterSeconds } = depth;
  return { kind: "shallow", accountId, invoiceId, reason, retryAfterSeconds };
}

/** Whether the block is newer than the invoice: after the head at that time, or by time if no head was known. */
function isAfter({ blockNumber, blockTimeMs }: Mined, invoice: Invoice, network: NetworkName): boolean {
  const head = (JSON.parse(invoice.heads) as Partial<Record<NetworkName, string>>)[network];
  if (head !== undefined) return blockNumber > BigInt(head);
  return blockTimeMs >= invoice.createdAt - MAX_CLOCK_SKEW_MS;
}

/** A contract may transfer something else when its transaction is mined again after a reorganisation. */
export const isSameTransfer = ({ amount, from }: Transfer, credited: PaymentRow): boolean =>
  amount === credited.amount && same(from, credited.payer);

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
