import { and, eq, sql } from "drizzle-orm";
import { AppError } from "../lib/app-error.ts";
import { prepared } from "../storage/prepared.ts";
import type { Store } from "../storage/store.ts";
import { accountLimits, type LIMIT_NAMES } from "./schema.ts";

/** The limits of one account (docs/contract/api.md, Limits), by their names in `roost account limit`. */
export interface AccountLimits {
  /** GETs per second, with a burst of one second's worth. */
  reads: number;
  /** Other requests per second, with a burst of five seconds' worth. */
  writes: number;
  /** Concurrent event streams. */
  streams: number;
  instances: number;
  agents: number;
  /** Total size of its workspaces. */
  workspaceBytes: number;
  /** Of the host's models; null without a limit. */
  tokensPerDay: number | null;
  tokensPerMonth: number | null;
}

export type LimitName = (typeof LIMIT_NAMES)[number];

/** API keys of an account. */
export const MAX_KEYS = 100;

/** Total size of an account's messages: their texts and senders, and 512 bytes each for their rows. */
export const MAX_HISTORY_BYTES = 1024 * 1024 * 1024;

export interface LimitsOfAccounts {
  byDefault: AccountLimits;
  /** The host's defaults, with the operator's overrides for this account. */
  of(accountId: string): AccountLimits;
  /** Only the operator's overrides for this account. */
  changedOf(accountId: string): Partial<AccountLimits>;
  /** `none` lifts a limit that may be absent, whatever the host's is; `default` restores that. Call it in a transaction. */
  set(accountId: string, name: LimitName, value: LimitChange): void;
}

export type LimitChange = number | "none" | "default";

/** Stored where there is none: more than any limit. */
const NONE = Number.MAX_SAFE_INTEGER;

/** A limit as it is stored, in force: the host's default if there is none. */
export const limitInForce = <Default extends number | null>(stored: number | null, byDefault: Default) =>
  stored === NONE ? null : (stored ?? byDefault);

/** Limits are read at each use, since an operator's command may change them while the server runs. */
export function createAccountLimits(
  { db, oncePerSnapshot }: Pick<Store, "db" | "oncePerSnapshot">,
  byDefault: AccountLimits,
): LimitsOfAccounts {
  const changed = prepared(db, () =>
    db
      .select({ name: accountLimits.name, value: accountLimits.value })
      .from(accountLimits)
      .where(eq(accountLimits.accountId, sql.placeholder("accountId"))),
  );
  const changedOf = oncePerSnapshot(
    (accountId): Partial<AccountLimits> =>
      Object.fromEntries(changed.all({ accountId }).map(({ name, value }) => [name, limitInForce(value, null)])),
  );
  return {
    byDefault,
    of: (accountId) => ({ ...byDefault, ...changedOf(accountId) }),
    changedOf,
    set(accountId, name, value) {
      if (value === "default") {
        db.delete(accountLimits)
          .where(and(eq(accountLimits.accountId, accountId), eq(accountLimits.name, name)))
          .run();
        return;
      }
      const stored = value === "none" ? NONE : value;
      db.insert(accountLimits)
        .values({ accountId, name, value: stored })
        .onConflictDoUpdate({ target: [accountLimits.accountId, accountLimits.name], set: { value: stored } })
        .run();
    },
  };
}

/**
 * Throws `conflict` if `used` exceeds a quota: waiting does not help, so it is not a 429 (docs/contract/api.md,
 * Conventions). `owner` is the account, instance or workspace that has the quota; `remedy` says how to make room.
 */
export function refuseOverQuota(what: string, owner: string, used: number, limit: number, remedy?: string): void {
  if (used <= limit) return;
  const refusal = `${what}: expected at most ${limit} for ${owner}; this would make it ${used}`;
  throw new AppError("conflict", remedy === undefined ? refusal : `${refusal}; ${remedy}`);
}
