import type { Mined, Transfer } from "../chain/chain.ts";
import { NETWORKS, type NetworkName } from "../chain/networks.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { formatMoney, lesser, type Micros } from "../lib/money.ts";
import type { Meter } from "../meter/meter.ts";
import type { Audit } from "../storage/audit.ts";
import type { Store } from "../storage/store.ts";
import { createAuthorizations } from "./facilitator/authorizations.ts";
import type { Invoices } from "./invoices.ts";
import { paymentQueries } from "./payment-queries.ts";
import type { Proof } from "./proof.ts";
import type { PaymentRow } from "./schema.ts";

export interface CreditingParts {
  store: Store;
  clock: { now(): number };
  ledger: Ledger;
  audit: Audit;
  /** Null for transfers that have paid no invoice. */
  invoices: Pick<Invoices, "pay"> | null;
}

export interface CreditParts extends CreditingParts {
  meter: Pick<Meter, "settle">;
  invoices: Pick<Invoices, "pay" | "unpay">;
}

/** A transfer to be credited; `before` is its row if it was credited and reversed before. */
export interface PendingCredit {
  transfer: Transfer;
  accountId: string;
  invoiceId: string | null;
  before: PaymentRow | undefined;
}

export interface Credits {
  /**
   * Credits a transfer and collects what its account owes, in one transaction. `actor`: who presented it, or `host`.
   */
  credit(proof: Proof, mined: Mined, due: PendingCredit, actor: string): PaymentRow;
  /**
   * Reverses a credit, in one transaction: takes what the account still has, and records the rest as owed
   * (docs/contract/billing.md, Depth). Stops its instances if nothing is left.
   */
  reverse(network: NetworkName, payment: PaymentRow): void;
}

function noteIn(audit: Audit, actor: string, action: string, network: NetworkName, payment: PaymentRow): void {
  const { accountId, txHash, logIndex, invoiceId, amount, transactionId } = payment;
  const detail = { accountId, network, txHash, logIndex, invoiceId, amount: formatMoney(amount) };
  audit.append({ actor, action, subject: transactionId, detail });
}

/** Only credits. */
export function createCrediting({ store, clock, ledger, audit, invoices }: CreditingParts): Pick<Credits, "credit"> {
  const rows = paymentQueries(store.db);
  const signed = createAuthorizations(store);

  /** Collects, from a top-up, what an earlier reversal could not take. */
  function takeOwed(accountId: string, max: Micros): void {
    const { owed } = ledger.accountBalance(accountId);
    const amount = lesser(owed, max);
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
        if (invoiceId !== null) invoices?.pay(invoiceId);
        else if (before) signed.close(payment);
        noteIn(audit, actor, "payment.credit", network, payment);
        takeOwed(accountId, amount);
        return payment;
      }),
  };
}

export function createCredits(parts: CreditParts): Credits {
  const { store, ledger, meter, audit, invoices } = parts;
  const rows = paymentQueries(store.db);
  const signed = createAuthorizations(store);
  return {
    ...createCrediting(parts),
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
        if (invoiceId === null) signed.reopen(payment);
        else if (!rows.isPaid(accountId, invoiceId)) invoices.unpay(invoiceId);
        noteIn(audit, "host", "payment.reverse", network, { ...payment, transactionId });
        meter.settle(accountId);
      }),
  };
}
