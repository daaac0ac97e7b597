import { limitDefaults } from "../../app/limit-defaults.ts";
import { createAccountLimits, type LimitChange, type LimitName } from "../../limits/account-limits.ts";
import { LIMIT_NAMES } from "../../limits/schema.ts";
import { printJson, printTable } from "../output.ts";
import { type AccountOptions, findAccount, optionOf, readLimits, showAccountRecord } from "./account-record.ts";
import { withData } from "./data-folder.ts";
import { readEmail } from "./email.ts";

export type LimitOptions = Partial<Record<LimitName, LimitChange>>;

/** `roost account limit EMAIL [--instances N] …`: changes limits and shows all. A running server sees them at once. */
export function limitAccount(email: string, { json, data, ...given }: AccountOptions & LimitOptions): Promise<void> {
  const address = readEmail(email);
  return withData(data === undefined ? {} : { data }, "refuse", (parts) => {
    const { store, audit, config } = parts;
    const changes = LIMIT_NAMES.flatMap((name) => (given[name] === undefined ? [] : [[name, given[name]] as const]));
    const account = findAccount(parts, address);
    const { accountId } = account;
    const limits = createAccountLimits(store, limitDefaults(config));
    store.transaction(() => {
      if (changes.length === 0) return;
      for (const [name, value] of changes) limits.set(accountId, name, value);
      audit.append({
        actor: "operator",
        action: "account.limit",
        subject: accountId,
        detail: Object.fromEntries(changes),
      });
    });
    const shown = readLimits(parts, accountId);
    if (json) {
      const record = showAccountRecord(account, parts);
      printJson({ ...record, limits: { ...record.limits, ...shown } });
    } else
      printTable(
        ["LIMIT", "VALUE", "OF"],
        LIMIT_NAMES.map((name) => [
          optionOf(name),
          String(shown[name].value ?? "none"),
          shown[name].isDefault ? "every account" : "this account",
        ]),
        "",
        {},
      );
  });
}
