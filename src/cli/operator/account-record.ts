import type { Account } from "../../accounts/schema.ts";
import type { Foundation } from "../../app/foundation.ts";
import { limitDefaults } from "../../app/limit-defaults.ts";
import type { Config } from "../../config.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { isoTime, isoTimeOrNull } from "../../lib/clock.ts";
import { CURRENCY, formatMoney, type Micros } from "../../lib/money.ts";
import { createAccountLimits, type LimitName } from "../../limits/account-limits.ts";
import { LIMIT_NAMES } from "../../limits/schema.ts";
import type { Store } from "../../storage/store.ts";
import { Failure } from "../failure.ts";
import { roost } from "./advice.ts";
import type { DataOptions } from "./data-folder.ts";

export interface AccountOptions extends DataOptions {
  json?: true;
}

/** As last committed: up to ten seconds of metered usage on a running server are missing. */
function balanceOf(accountId: string, ledger: Ledger): Micros {
  const { balance, unposted } = ledger.accountBalance(accountId);
  return balance - unposted;
}

/** An account as the operator sees it. */
export const showAccountRecord = (account: Account, { ledger }: Pick<Foundation, "ledger">) => ({
  accountId: account.accountId,
  email: account.email,
  name: account.name,
  createdAt: isoTime(account.createdAt),
  suspendedAt: isoTimeOrNull(account.suspendedAt),
  balance: formatMoney(balanceOf(account.accountId, ledger)),
  currency: CURRENCY,
  limits: { monthlyLimit: account.monthlyLimit === null ? null : formatMoney(account.monthlyLimit) },
});

/** Throws if no account has the e-mail address. */
export function findAccount(
  { accounts, config }: Pick<Foundation, "accounts"> & { config: Config },
  email: string,
): Account {
  const account = accounts.findByEmail(email);
  if (account) return account;
  throw new Failure(
    `there is no account with the e-mail ${email}`,
    `to list accounts: ${roost("account list", config.dataDir)}`,
  );
}

export type ShownLimits = Record<LimitName, { value: number | null; isDefault: boolean }>;

/** An account's limits, and which are the host's defaults (by the settings that this command sees). */
export function readLimits({ store, config }: { store: Store; config: Config }, accountId: string): ShownLimits {
  const limits = createAccountLimits(store, limitDefaults(config));
  const [all, changed] = [limits.of(accountId), limits.changedOf(accountId)];
  const shown = LIMIT_NAMES.map((name) => [name, { value: all[name], isDefault: changed[name] === undefined }]);
  return Object.fromEntries(shown) as ShownLimits;
}

/** `workspaceBytes` → `workspace-bytes`, the option's name. */
export const optionOf = (name: LimitName): string => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
