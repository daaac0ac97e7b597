import { eq, sql } from "drizzle-orm";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { type LimitsOfAccounts, MAX_HISTORY_BYTES, refuseOverQuota } from "./account-limits.ts";
import { accountUsage } from "./schema.ts";

/** What an account's quotas limit. */
export type Quota = "instances" | "agents" | "workspaceBytes";

export interface Quotas {
  /** What the account has, including changes of the open transaction. */
  used(accountId: string): Record<Quota, number>;
  /** Throws `conflict` if the account has reached the quota. Call it before any other check. */
  requireRoom(accountId: string, quota: Quota): void;
  /**
   * Runs `work` in the open transaction. Throws `conflict` if the account then exceeds the quota and has more than
   * before: an account above a limit that was lowered may still shrink.
   */
  within<T>(accountId: string, quota: Quota, work: () => T): T;
  /** Throws `conflict` if the account's history has no room for so many more bytes. */
  requireHistoryRoom(accountId: string, bytes: number): void;
}

const WORDS: Record<Quota, string> = {
  instances: "instances",
  agents: "agents",
  workspaceBytes: "bytes of workspaces",
};

const MORE_HISTORY = "clear a conversation or delete agents; the room becomes free a little later";

export function createQuotas({ db }: { db: Db }, limits: LimitsOfAccounts): Quotas {
  const { instances, agents, workspaceBytes } = accountUsage;
  const byAccount = prepared(db, () =>
    db
      .select({ instances, agents, workspaceBytes })
      .from(accountUsage)
      .where(eq(accountUsage.accountId, sql.placeholder("accountId"))),
  );
  const used = (accountId: string) => byAccount.get({ accountId }) ?? { instances: 0, agents: 0, workspaceBytes: 0 };
  const history = prepared(db, () =>
    db
      .select({ used: accountUsage.historyBytes })
      .from(accountUsage)
      .where(eq(accountUsage.accountId, sql.placeholder("accountId"))),
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
      const used = (history.get({ accountId })?.used ?? 0) + bytes;
      refuseOverQuota("bytes of messages", "the account", used, MAX_HISTORY_BYTES, MORE_HISTORY);
    },
  };
}
