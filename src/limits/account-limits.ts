import { and, eq, sql } from "drizzle-orm";
import { AppError } from "../lib/app-error.ts";
import { lazily } from "../lib/lazily.ts";
import type { Store } from "../storage/store.ts";
import { accountLimits, type LIMIT_NAMES } from "./schema.ts";

/** What one account may have and do (api.md section 1, Limits), by the name it has in `roost account limit`. */
export interface AccountLimits extends Record<LimitName, number> {
  /** GETs a second, with a burst of one second's worth. */
  reads: number;
  /** Everything else, a second, with a burst of five seconds' worth. */
  writes: number;
  /** Event streams open at once. */
  streams: number;
  instances: number;
  agents: number;
  /** Of all its workspaces together. */
  workspaceBytes: number;
}

export type LimitName = (typeof LIMIT_NAMES)[number];

/** API keys of an account. */
export const MAX_KEYS = 100;

/** All messages of an account together: their texts and senders, and 512 bytes for each, which its rows take. */
export const MAX_HISTORY_BYTES = 1024 * 1024 * 1024;

export interface LimitsOfAccounts {
  /** The host's defaults with what the operator has changed for this account. */
  of(accountId: string): AccountLimits;
  /** Those that the operator has changed for this account. */
  changedOf(accountId: string): Partial<AccountLimits>;
  /** Null puts the host's default back. Call it in a transaction. */
  set(accountId: string, name: LimitName, value: number | null): void;
}

/** The limits of accounts, read at each use: an operator's command changes them under a running server. */
export function createAccountLimits({ db }: Pick<Store, "db">, defaults: AccountLimits): LimitsOfAccounts {
  const changed = lazily(() =>
    db
      .select({ name: accountLimits.name, value: accountLimits.value })
      .from(accountLimits)
      .where(eq(accountLimits.accountId, sql.placeholder("accountId")))
      .prepare(),
  );
  const changedOf = (accountId: string): Partial<AccountLimits> =>
    Object.fromEntries(
      changed()
        .all({ accountId })
        .map(({ name, value }) => [name, value]),
    );
  return {
    of: (accountId) => ({ ...defaults, ...changedOf(accountId) }),
    changedOf,
    set(accountId, name, value) {
      if (value === null) {
        db.delete(accountLimits)
          .where(and(eq(accountLimits.accountId, accountId), eq(accountLimits.name, name)))
          .run();
        return;
      }
      db.insert(accountLimits)
        .values({ accountId, name, value })
        .onConflictDoUpdate({ target: [accountLimits.accountId, accountLimits.name], set: { value } })
        .run();
    },
  };
}

/**
 * Throws `conflict` where `used` is more than a quota allows: waiting does not help, so it is no 429 (api.md section 1).
 * `whose` is the account, the instance or the workspace that the quota is of, `remedy` what makes room.
 */
export function refuseOverQuota(what: string, whose: string, used: number, limit: number, remedy?: string): void {
  if (used <= limit) return;
  const refusal = `${what}: expected at most ${limit} for ${whose}; this would make it ${used}`;
  throw new AppError("conflict", remedy === undefined ? refusal : `${refusal}; ${remedy}`);
}
