import type { Database } from "bun:sqlite";
import type { ModelLimits } from "../limits/model-limits.ts";
import type { Caller, Limited } from "./budgets.ts";

/** What the operator lets an account take of the host's models. */
type OperatorLimits = (accountId: string) => Pick<ModelLimits, "tokensPerDay" | "tokensPerMonth">;

/** As they are stored: JSON. */
interface OwnLimits {
  account: string | null;
  instance: string | null;
  agent: string | null;
}

/**
 * The limits that apply to a call: the operator's, the account's, the instance's and the agent's, and what runs that
 * another one has caused may take together.
 */
export function createLimitsFor(
  sqlite: Database,
  operatorLimits: OperatorLimits,
  tokensPerMessage: number,
): (caller: Caller) => Limited[] {
  // One statement, since it is asked twice for each message.
  const own = sqlite.query<OwnLimits, [string, string | null, string | null]>(
    `SELECT (SELECT model_limits FROM accounts WHERE account_id = ?1) AS account,
      (SELECT model_limits FROM instances WHERE instance_id = ?2) AS instance,
      (SELECT model_limits FROM agents WHERE agent_id = ?3) AS agent`,
  );
  return ({ accountId, instanceId, agentId, ofHost, rootRunId }) => {
    const limited: Limited[] = [];
    const operator = operatorLimits(accountId);
    if (ofHost && (operator.tokensPerDay !== null || operator.tokensPerMonth !== null)) {
      const limits = { costPerDay: null, costPerMonth: null, ...operator };
      limited.push({ scope: "host", ownerId: accountId, limits });
    }
    const found = own.get(accountId, instanceId, agentId);
    const add = (scope: keyof OwnLimits, ownerId: string | null) => {
      const limits = found?.[scope] ?? null;
      if (ownerId !== null && limits !== null)
        limited.push({ scope, ownerId, limits: JSON.parse(limits) as ModelLimits });
    };
    add("account", accountId);
    add("instance", instanceId);
    add("agent", agentId);
    if (rootRunId !== null) limited.push({ scope: "message", ownerId: rootRunId, limits: { tokensPerMessage } });
    return limited;
  };
}
