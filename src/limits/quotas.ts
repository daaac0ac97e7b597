import { eq, sql } from "drizzle-orm";
import { lazily } from "../lib/lazily.ts";
import type { Db } from "../storage/store.ts";
import { type LimitsOfAccounts, MAX_HISTORY_BYTES, refuseOverQuota } from "./account-limits.ts";
import { accountUsage } from "./schema.ts";

/** What an account can have so much of, and no more. */
export type Quota = "instances" | "agents" | "workspaceBytes";

export interface Quotas {
  /** What the account has, the transaction that is open included. */
  used(accountId: string): Record<Quota, number>;
  /** Throws `conflict` where the account has as much of it as it may: to be asked before anything else is judged. */
  requireRoom(accountId: string, quota: Quota): void;
  /**
   * Does what may need more of it, in the transaction that is open. Throws `conflict` where the account then has more
   * than it may, and has more than before: one over a limit that was lowered may shrink.
   */
  within<T>(accountId: string, quota: Quota, work: () => T): T;
  /** Throws `conflict` where the account's history has no room for this many bytes more. */
  requireHistoryRoom(accountId: string, bytes: number): void;
}

const WORDS: Record<Quota, string> = {
  instances: "instances",
  agents: "agents",
  workspaceBytes: "bytes of workspaces",
};

const MORE_HISTORY =
  "clear a conversation, or delete agents; what is cleared is given back while it is cleared away, a little later";

export function createQuotas({ db }: { db: Db }, limits: LimitsOfAccounts): Quotas {
  const { instances, agents, workspaceBytes } = accountUsage;
  const byAccount = lazily(() =>
    db
      .select({ instances, agents, workspaceBytes })
      .from(accountUsage)
      .where(eq(accountUsage.accountId, sql.placeholder("accountId")))
      .prepare(),
  );
  const used = (accountId: string) => byAccount().get({ accountId }) ?? { instances: 0, agents: 0, workspaceBytes: 0 };
  const history = lazily(() =>
    db
      .select({ used: accountUsage.historyBytes })
      .from(accountUsage)
      .where(eq(accountUsage.accountId, sql.placeholder("accountId")))
      .prepare(),
  );
  const refuseOver = (accountId: string, quota: Quota, amount: number) =>
    refuseOverQuota(WORDS[quota], "the account", amount, limits.of(accountId)[quota]);
  return {
    used,
    requireRoom: (accountId, quota) => refuseOver(accountId, quota, used(accountId)[quota] + 1),
    within(accountId, quota, work) {
      const before = used(accountId)[quota];
      const result = work();
      const after = used(accountId)[quota];
      if (after > before) refuseOver(accountId, quota, after);
      return result;
    },
    requireHistoryRoom(accountId, bytes) {
      const used = (history().get({ accountId })?.used ?? 0) + bytes;
      refuseOverQuota("bytes of messages", "the account", used, MAX_HISTORY_BYTES, MORE_HISTORY);
    },
  };
}
