import type { Account } from "../../accounts/schema.ts";
import { NETWORK_NAMES, NETWORKS } from "../../chain/networks.ts";
import { isoTime } from "../../lib/clock.ts";
import { CURRENCY, formatMoney, type Micros } from "../../lib/money.ts";
import { LIMIT_NAMES } from "../../limits/schema.ts";
import { type AccountSummary, readAccountSummary } from "../../payments/account-summary.ts";
import { balanceCents, printFields, printJson, printTable, say, shortMoney, shortTime } from "../output.ts";
import {
  type AccountOptions,
  findAccount,
  optionOf,
  readLimits,
  type ShownLimits,
  showAccountRecord,
} from "./account-record.ts";
import { roost } from "./advice.ts";
import { withData } from "./data-folder.ts";
import { readEmail } from "./email.ts";

const PAGE = 500;

/** `roost account list`: oldest first. */
export function listAccounts(options: AccountOptions): Promise<void> {
  return withData(options, "refuse", (parts) => {
    const all: Account[] = [];
    for (let after: string | null = null; ; after = all.at(-1)?.accountId ?? null) {
      const page = parts.accounts.list(after, PAGE);
      all.push(...page);
      if (page.length < PAGE) break;
    }
    const shown = all.map((account) => showAccountRecord(account, parts));
    if (options.json) printJson(shown);
    else
      printTable(
        ["E-MAIL", "NAME", "BALANCE", "STATUS", "CREATED", "ID"],
        shown.map(({ email, name, balance, suspendedAt, createdAt, accountId }) => [
          email,
          name,
          balanceCents(balance),
          suspendedAt === null ? "active" : "suspended",
          shortTime(createdAt),
          accountId,
        ]),
        `There are no accounts. To invite somebody: ${roost("invite create", parts.config.dataDir)}`,
        { leaveOut: ["CREATED", "NAME"], shorten: ["E-MAIL"] },
      );
  });
}

/** `roost account show EMAIL`: the account and its money, as last committed. */
export function showAccount(email: string, options: AccountOptions): Promise<void> {
  const address = readEmail(email);
  return withData(options, "refuse", (parts) => {
    const found = findAccount(parts, address);
    const summary = showSummary(readAccountSummary(parts.store.db, found.accountId, parts.clock.now()));
    const limits = readLimits(parts, found.accountId);
    const record = showAccountRecord(found, parts);
    const account = { ...record, ...summary, limits: { ...record.limits, ...limits } };
    if (options.json) printJson(account);
    else print(account, limits);
  });
}

const networkOf = (chainId: number): string =>
  NETWORK_NAMES.find((name) => NETWORKS[name].chainId === chainId) ?? `chain ${chainId}`;

const showSummary = ({
  owed,
  spentThisMonth,
  revenue,
  openInvoices,
  uncredited,
  signed,
  payments,
}: AccountSummary) => ({
  owed: formatMoney(owed),
  spentThisMonth: formatMoney(spentThisMonth),
  revenue: formatMoney(revenue),
  openInvoices: openInvoices.map(({ invoiceId, amount, expiresAt }) => ({
    invoiceId,
    amount: formatMoney(amount),
    expiresAt: isoTime(expiresAt),
  })),
  uncredited: uncredited.map(({ chainId, txHash, status, reason, createdAt }) => ({
    network: networkOf(chainId),
    txHash,
    status,
    reason,
    createdAt: isoTime(createdAt),
  })),
  signedPayments: signed.map(({ chainId, payer, amount, status, txHash, createdAt }) => ({
    network: networkOf(chainId),
    payer,
    amount: formatMoney(amount),
    status,
    txHash,
    createdAt: isoTime(createdAt),
  })),
  payments: payments.map(({ chainId, txHash, amount, status, transactionId, createdAt }) => ({
    network: networkOf(chainId),
    txHash,
    amount: formatMoney(amount),
    status,
    transactionId,
    createdAt: isoTime(createdAt),
  })),
});

function print(
  account: ReturnType<typeof showAccountRecord> & ReturnType<typeof showSummary>,
  limits: ShownLimits,
): void {
  const changed = LIMIT_NAMES.filter((name) => !limits[name].isDefault);
  const { monthlyLimit } = account.limits;
  const { openInvoices, uncredited, signedPayments, payments } = account;
  printFields([
    ["E-mail", account.email],
    ["Name", account.name],
    ["ID", account.accountId],
    ["Status", account.suspendedAt === null ? "active" : `suspended since ${shortTime(account.suspendedAt)}`],
    ["Balance", `${balanceCents(account.balance)} ${CURRENCY}`],
    ["Owed", `${shortMoney(account.owed)} ${CURRENCY}`],
    ["This month", `${shortMoney(account.spentThisMonth)} ${CURRENCY}`],
    ["Monthly limit", monthlyLimit === null ? "none" : `${shortMoney(monthlyLimit)} ${CURRENCY}`],
    [
      "Limits",
      changed.map((name) => `${optionOf(name)} ${limits[name].value ?? "none"}`).join(", ") || "the host's defaults",
    ],
    ["Revenue", `${shortMoney(account.revenue)} ${CURRENCY}`],
    ["Created", shortTime(account.createdAt)],
    ...openInvoices.map(({ amount, invoiceId, expiresAt }): [string, string] => [
      "Invoice",
      `${amount} ${CURRENCY}, open until ${shortTime(expiresAt)}  ${invoiceId}`,
    ]),
    ...uncredited.map(({ network, txHash, status, reason }): [string, string] => [
      "Not credited",
      `${network} ${txHash}: ${status}${reason === null ? "" : `, ${reason}`}`,
    ]),
    ...signedPayments.map(({ network, payer, amount, status, txHash, createdAt }): [string, string] => [
      "Signed payment",
      `${shortTime(createdAt)}  ${shortMoney(amount)} ${CURRENCY} from ${payer}, ${network}${txHash === null ? "" : ` ${txHash}`}: ${status}`,
    ]),
    ...payments.map(({ network, txHash, amount, status, createdAt }): [string, string] => [
      "Payment",
      `${shortTime(createdAt)}  ${shortMoney(amount)} ${CURRENCY}, ${network} ${txHash}: ${status}`,
    ]),
  ]);
}

/** `roost account credit EMAIL AMOUNT --note TEXT`: posts to the ledger and to the audit log, in one transaction. */
export function creditAccount(
  email: string,
  amount: Micros,
  options: AccountOptions & { note: string },
): Promise<void> {
  const address = readEmail(email);
  return withData(options, "refuse", (parts) => {
    const { store, ledger, audit } = parts;
    const account = store.transaction(() => {
      const found = findAccount(parts, address);
      const { accountId } = found;
      const { note } = options;
      const { transactionId } = ledger.post({ type: "credit", accountId, amount, against: "grants", note });
      const detail = { amount: formatMoney(amount), note, transactionId };
      audit.append({ actor: "operator", action: "account.credit", subject: accountId, detail });
      return showAccountRecord(found, parts);
    });
    if (options.json) printJson(account);
    else
      say(
        `Credited ${shortMoney(amount)} ${CURRENCY} to ${account.email}: the balance is ${balanceCents(account.balance)}.`,
      );
  });
}

/** `roost account suspend|resume EMAIL`: a suspended account has every request refused. */
export function setSuspended(email: string, suspended: boolean, options: AccountOptions): Promise<void> {
  const address = readEmail(email);
  return withData(options, "refuse", (parts) => {
    const account = findAccount(parts, address);
    if ((account.suspendedAt !== null) !== suspended) parts.accounts.setSuspended(account.accountId, suspended);
    if (options.json) printJson(showAccountRecord(findAccount(parts, address), parts));
    else say(`${account.email} is ${suspended ? "suspended" : "active"}.`);
  });
}
