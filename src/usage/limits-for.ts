import type { Database } from "bun:sqlite";
import { type AccountLimits, limitInForce } from "../limits/account-limits.ts";
import type { ModelLimits } from "../limits/model-limits.ts";
import type { Caller, Limited } from "./budgets.ts";

/** What applies to a call. */
export interface CallLimits {
  limited: Limited[];
  /** The run whose message has caused the caller's; null for all other runs. */
  rootRunId: string | null;
}

/** `runId` is null for a call that is of no run. */
export type LimitsFor = (caller: Omit<Caller, "rootRunId">, runId: string | null) => CallLimits;

/** As it is stored. */
interface StoredLimits {
  /** Of the account, set by the operator. */
  perDay: number | null;
  perMonth: number | null;
  /** JSON, like the next two. */
  account: string | null;
  instance: string | null;
  agent: string | null;
  root: string | null;
}

/**
 * The limits that apply to a call: the operator's, the account's, the instance's and the agent's, and what runs that
 * another one has caused may take together.
 */
export function createLimitsFor(
  sqlite: Database,
  byDefault: Pick<AccountLimits, "tokensPerDay" | "tokensPerMonth">,
  tokensPerMessage: number,
): LimitsFor {
  // One statement, since it is asked twice for each message.
  const read = sqlite.query<StoredLimits, [string, string | null, string | null, string | null]>(
    `SELECT (SELECT value FROM account_limits WHERE account_id = ?1 AND name = 'tokensPerDay') AS perDay,
      (SELECT value FROM account_limits WHERE account_id = ?1 AND name = 'tokensPerMonth') AS perMonth,
      (SELECT model_limits FROM accounts WHERE account_id = ?1) AS account,
      (SELECT model_limits FROM instances WHERE instance_id = ?2) AS instance,
      (SELECT model_limits FROM agents WHERE agent_id = ?3) AS agent,
      (SELECT root_run_id FROM delegations WHERE run_id = ?4) AS root`,
  );
  return ({ accountId, instanceId, agentId, ofHost }, runId) => {
    const limited: Limited[] = [];
    const stored = read.get(accountId, instanceId, agentId, runId);
    const tokensPerDay = limitInForce(stored?.perDay ?? null, byDefault.tokensPerDay);
    const tokensPerMonth = limitInForce(stored?.perMonth ?? null, byDefault.tokensPerMonth);
    if (ofHost && (tokensPerDay !== null || tokensPerMonth !== null)) {
      const limits = { costPerDay: null, costPerMonth: null, tokensPerDay, tokensPerMonth };
      limited.push({ scope: "host", ownerId: accountId, limits });
    }
    const add = (scope: "account" | "instance" | "agent", ownerId: string | null) => {
      const limits = stored?.[scope] ?? null;
      if (ownerId !== null && limits !== null)
        limited.push({ scope, ownerId, limits: JSON.parse(limits) as ModelLimits });
    };
    add("account", accountId);
    add("instance", instanceId);
    add("agent", agentId);
    const rootRunId = stored?.root ?? null;
    if (rootRunId !== null) limited.push({ scope: "message", ownerId: rootRunId, limits: { tokensPerMessage } });
    return { limited, rootRunId };
  };
}
