import { sumGrants } from "../../ledger/totals.ts";
import { CURRENCY, formatMoney, type Micros } from "../../lib/money.ts";
import { Failure } from "../failure.ts";
import { printJson, say, shortMoney } from "../output.ts";
import { type AccountOptions, findAccount, showAccountRecord } from "./account-record.ts";
import { withData } from "./data-folder.ts";
import { readEmail } from "./email.ts";

/**
 * `roost account debit EMAIL AMOUNT --note TEXT`: reverses credit that was given by mistake, in the ledger and the audit log,
 * in one transaction. What the account has paid itself, or used already, is not taken.
 */
export function debitAccount(email: string, amount: Micros, options: AccountOptions & { note: string }): Promise<void> {
  const address = readEmail(email);
  return withData(options, "refuse", (parts) => {
    const { store, ledger, audit } = parts;
    const account = store.transaction(() => {
      const found = findAccount(parts, address);
      const { accountId } = found;
      const { note } = options;
      const { balance, unposted } = ledger.accountBalance(accountId);
      refuseMoreThan(
        sumGrants(store.db, accountId),
        amount,
        `of ${address}'s balance is credit that can be taken back`,
      );
      refuseMoreThan(balance - unposted, amount, `is left of ${address}'s balance`);
      const { transactionId } = ledger.post({ type: "reversal", accountId, amount: -amount, against: "grants", note });
      const detail = { amount: formatMoney(amount), note, transactionId };
      audit.append({ actor: "operator", action: "account.debit", subject: accountId, detail });
      return showAccountRecord(found, parts);
    });
    if (options.json) printJson(account);
    else say(`Took ${shortMoney(amount)} ${CURRENCY} from ${account.email}: ${shortMoney(account.balance)} are left.`);
  });
}

function refuseMoreThan(most: Micros, amount: Micros, what: string): void {
  if (amount > most) throw new Failure(`only ${formatMoney(most)} ${CURRENCY} ${what}: nothing was taken`);
}
