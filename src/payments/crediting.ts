import type { Mined, Transfer } from "../chain/chain.ts";
import { NETWORKS, type NetworkName } from "../chain/networks.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { formatMoney, type Micros } from "../lib/money.ts";
import type { Meter } from "../meter/meter.ts";
import type { Audit } from "../storage/audit.ts";
import type { Store } from "../storage/store.ts";
import type { Invoices } from "./invoices.ts";
import { paymentQueries } from "./payment-queries.ts";
import type { Proof } from "./proof.ts";
import type { PaymentRow } from "./schema.ts";

export interface CreditingParts {
  store: Store;
  clock: { now(): number };
  ledger: Ledger;
  meter: Pick<Meter, "settle">;
  audit: Audit;
  invoices: Pick<Invoices, "pay" | "unpay">;
}

/** A transfer that is to be credited: whose it is, by which invoice, and its row where it was credited and reversed before. */
export interface Due {
  transfer: Transfer;
  accountId: string;
  invoiceId: string | null;
  before: PaymentRow | undefined;
}

export interface Crediting {
  /** Credits a transfer and takes what its account owes, in one transaction. `actor` is who presented it, or `host`. */
  credit(proof: Proof, mined: Mined, due: Due, actor: string): PaymentRow;
  /**
   * Takes a credit back, in one transaction: what the account still has; the rest it owes (billing.md, x402 3). Stops its
   * instances where nothing is left.
   */
  reverse(network: NetworkName, payment: PaymentRow): void;
}

export function createCrediting({ store, clock, ledger, meter, audit, invoices }: CreditingParts): Crediting {
  const rows = paymentQueries(store.db);

  function note(actor: string, action: string, network: NetworkName, payment: PaymentRow, transactionId: string): void {
    const { accountId, txHash, logIndex, invoiceId, amount } = payment;
    const detail = { accountId, network, txHash, logIndex, invoiceId, amount: formatMoney(amount) };
    audit.append({ actor, action, subject: transactionId, detail });
  }

  /** The second entry beside a top-up: what was reversed and could not be taken then. */
  function takeOwed(accountId: string, most: Micros): void {
    const { owed } = ledger.accountBalance(accountId);
    const amount = lesser(owed, most);
    if (amount === 0n) return;
    const against = `receivable:${accountId}`;
    ledger.post({ type: "reversal", accountId, amount: -amount, against, note: "owed since an earlier reversal" });
    rows.addOwed(accountId, -amount);
  }

  return {
    credit: ({ network, txHash }, { blockNumber, blockHash }, { transfer, accountId, invoiceId, before }, actor) =>
      store.transaction(() => {
        const { chainId } = NETWORKS[network];
        const { logIndex, amount, from: payer } = transfer;
        const against = `clearing:${network}`;
        const { transactionId } = ledger.post({
          type: "top_up",
          accountId,
          amount,
          against,
          transfer: { chainId, txHash },
        });
        const place = {
          blockNumber: Number(blockNumber),
          blockHash,
          transactionId,
          status: "credited" as const,
          told: false,
        };
        const row = { chainId, txHash, logIndex, payer, amount, invoiceId, accountId, ...place };
        if (before) rows.change(before.paymentId, row);
        const payment = before ? { ...before, ...row } : rows.insert({ ...row, createdAt: clock.now() });
        if (invoiceId !== null) invoices.pay(invoiceId);
        note(actor, "payment.credit", network, payment, transactionId);
        takeOwed(accountId, amount);
        return payment;
      }),
    reverse: (network, payment) =>
      store.transaction(() => {
        const { paymentId, accountId, amount, chainId, txHash, invoiceId } = payment;
        meter.settle(accountId);
        const { balance, unposted } = ledger.accountBalance(accountId);
        const taken = lesser(balance - unposted, amount);
        const { transactionId } = ledger.post({
          type: "reversal",
          accountId,
          amount: -taken,
          against: [
            { ledgerAccount: `receivable:${accountId}`, amount: taken - amount },
            { ledgerAccount: `clearing:${network}`, amount },
          ],
          transfer: { chainId, txHash },
        });
        rows.addOwed(accountId, amount - taken);
        rows.change(paymentId, { status: "reversed" });
        if (invoiceId !== null && !rows.isPaid(accountId, invoiceId)) invoices.unpay(invoiceId);
        note("host", "payment.reverse", network, payment, transactionId);
        meter.settle(accountId);
      }),
  };
}

function lesser(a: Micros, b: Micros): Micros {
  return a < b ? a : b;
}
