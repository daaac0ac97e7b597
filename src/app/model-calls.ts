import type { Config } from "../config.ts";
import { AppError } from "../lib/app-error.ts";
import { isoTime, secondsUntil } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { isServed } from "../lib/model-name.ts";
import type { LimitsOfAccounts } from "../limits/account-limits.ts";
import { isOfDay, type ModelLimitName } from "../limits/model-limits.ts";
import { type ModelPrices, readModelPrices } from "../limits/model-prices.ts";
import type { AgentEvent } from "../messages/events/event.ts";
import { ModelError } from "../models/engine.ts";
import type { Engines } from "../models/engines.ts";
import type { OwnServers } from "../models/own-server.ts";
import { type Caller, createBudgets, type LimitState } from "../usage/budgets.ts";
import { createCallLog } from "../usage/call-log.ts";
import { createLimitsFor } from "../usage/limits-for.ts";
import { dayAt } from "../usage/periods.ts";
import { usageQueries } from "../usage/queries.ts";
import { limitInAnswer } from "../usage/record.ts";
import { createReservations } from "../usage/reservations.ts";
import type { Foundation } from "./foundation.ts";

export interface ModelCallParts {
  config: Pick<Config, "modelPrices" | "delegatedTokens">;
  foundation: Pick<Foundation, "clock" | "store">;
  log: Log;
  limits: LimitsOfAccounts;
  engines: Pick<Engines, "of">;
  ownServers: Pick<OwnServers, "versionOf">;
  appendEvent(agentId: string, event: AgentEvent): void;
}

/** Everything that calls of models need: what they may take, and where it is written. */
export function createModelCalls(parts: ModelCallParts) {
  const { foundation, log, limits, engines, ownServers, appendEvent } = parts;
  const { clock, store } = foundation;
  const prices = pricesOf(parts.config.modelPrices);
  const queries = usageQueries(store.db);
  const callLog = createCallLog(store, queries, log);
  const budgets = createBudgets(callLog.spent);

  /** Tells an agent's followers, once in a day or month for each limit. Call it in a transaction. */
  function warn({ agentId }: Caller, states: readonly LimitState<ModelLimitName>[], at: number): void {
    for (const { scope, ownerId, name, used, limit, until } of states) {
      const day = dayAt(at).first;
      const isNew = queries.warnOnce(scope, ownerId, name, isOfDay(name) ? day : day.slice(0, 7));
      if (!isNew || agentId === null) continue;
      const told = {
        scope: scope === "host" ? "account" : scope,
        limit: name,
        ...limitInAnswer(name, { used, limit }),
      };
      appendEvent(agentId, { type: "budget.warning", ...told, resetsAt: isoTime(until) } as AgentEvent);
    }
  }

  const operatorLimits = (accountId: string) => {
    const { tokensPerDay, tokensPerMonth } = limits.of(accountId);
    return { tokensPerDay, tokensPerMonth };
  };
  const reservations = createReservations({
    ...{ store, clock, prices, budgets, queries, warn },
    limitsFor: createLimitsFor(store.sqlite, limits.byDefault, parts.config.delegatedTokens),
    isOwnServer: (model, instanceId) => isServed(model) && ownServers.versionOf(instanceId) !== null,
  });
  return {
    prices,
    callLog,
    queries,
    reservations,
    operatorLimits,
    /** Throws `budget_exceeded` or `forbidden` if the limits leave no room for an answer. */
    requireBudget(whose: { accountId: string; instanceId: string; agentId: string }, model: string): void {
      try {
        reservations.requireRoom(whose, model, () => engines.of(model).answerTokens({ model }));
      } catch (error) {
        if (!(error instanceof ModelError)) throw error;
        const { kind, message, retryAt } = error;
        // A model that is not there fails its run, which says more.
        if (kind === "budget_exceeded" || kind === "forbidden") {
          throw new AppError(kind, message, { retryAfterSeconds: secondsUntil(clock, retryAt) });
        }
      }
    },
  };
}

function pricesOf(path: string | null): ModelPrices {
  const prices = path === null ? new Map() : readModelPrices(path);
  if (typeof prices === "string") throw new Error(`ROOST_MODEL_PRICES: ${prices}`);
  return prices;
}
