import { isoTime } from "../lib/clock.ts";
import { formatMoney } from "../lib/money.ts";
import { isOfDay, isOfTokens, MODEL_LIMIT_NAMES, type ModelLimitName } from "../limits/model-limits.ts";
import { ModelError } from "../models/engine.ts";
import { ALWAYS, dayAt, monthAt } from "./periods.ts";
import type { Period, Spent } from "./queries.ts";

/**
 * Whose limits they are. `host` is what the operator lets an account take of the host's own models, `message` what all
 * runs may take together that one message's run has caused.
 */
export type Scope = "host" | "account" | "instance" | "agent" | "message";

/** Besides an owner's limits that of all runs that one message's run has caused, whenever they call. */
export type LimitName = ModelLimitName | "tokensPerMessage";
const LIMIT_NAMES: readonly LimitName[] = [...MODEL_LIMIT_NAMES, "tokensPerMessage"];

export interface Limited {
  scope: Scope;
  ownerId: string;
  limits: { [Name in LimitName]?: number | null };
}

/** Who calls a model. */
export interface Caller {
  accountId: string;
  instanceId: string | null;
  agentId: string | null;
  /** Whether it is a model of the host, not one of a server that the instance brings. */
  ofHost: boolean;
  /** The run that has caused the caller's, and does not count itself; null if none has. */
  rootRunId: string | null;
}

/** A limit, and how far it is used. */
export interface LimitState<Name extends LimitName = LimitName> {
  scope: Scope;
  ownerId: string;
  name: Name;
  used: number;
  limit: number;
  /** When its day or month ends, in milliseconds since 1970; infinite for `tokensPerMessage`. */
  until: number;
}

export interface Held {
  release(): void;
}

/**
 * What is spent and reserved of each limit, in memory: this process makes all calls of the host, so nobody else changes
 * it. What was spent before is read when a limit is first looked at in its day or month.
 */
export interface Budgets {
  /**
   * Reserves the most that a call may take. `busy`: it would fit, but for what other calls hold now. Throws `ModelError`
   * (`budget_exceeded`) if it does not fit into what is left.
   */
  reserve(caller: Caller, limited: readonly Limited[], most: Spent, at: number): Held | "busy";
  /** Throws as `reserve` does, without reserving anything, and whatever other calls hold. */
  require(limited: readonly Limited[], accountId: string, most: Spent, at: number): void;
  /** Adds what a call took that began `at`. */
  add(caller: Caller, spent: Spent, at: number): void;
  /** An owner's limits of which at least four fifths are used. */
  nearlyUsed(limited: readonly Limited[], accountId: string, at: number): LimitState<ModelLimitName>[];
}

interface Counter {
  used: Spent;
  reserved: Spent;
}

/** Counters kept in memory: those of past days and months go first. */
const MAX_COUNTERS = 20_000;
const WARN_AT = 0.8;

/** `read` returns what was spent in a period before this process began to count it. */
export function createBudgets(
  read: (accountId: string, scope: Scope, ownerId: string, period: Period) => Spent,
): Budgets {
  const counters = new Map<string, Counter>();
  const keyOf = (scope: Scope, ownerId: string, period: Period) => `${scope} ${ownerId} ${period.first} ${period.last}`;

  function counterOf(accountId: string, scope: Scope, ownerId: string, period: Period): Counter {
    const key = keyOf(scope, ownerId, period);
    const known = counters.get(key);
    if (known !== undefined) return known;
    if (counters.size >= MAX_COUNTERS) dropUnused();
    const counter = { used: read(accountId, scope, ownerId, period), reserved: { tokens: 0, cost: 0 } };
    counters.set(key, counter);
    return counter;
  }

  /** They are read again when they are needed. */
  function dropUnused(): void {
    for (const [key, { reserved }] of counters) if (reserved.tokens === 0 && reserved.cost === 0) counters.delete(key);
  }

  /** Each limit that is set, with its counter. */
  function* each(limited: readonly Limited[], accountId: string, at: number) {
    const periods = { day: dayAt(at), month: monthAt(at), always: ALWAYS };
    for (const { scope, ownerId, limits } of limited) {
      for (const name of LIMIT_NAMES) {
        const limit = limits[name] ?? null;
        if (limit === null) continue;
        const period = periods[periodOf(name)];
        const counter = counterOf(accountId, scope, ownerId, period);
        const kind = isOfTokens(name) ? "tokens" : "cost";
        const { used, reserved } = counter;
        yield {
          counter,
          kind,
          reserved: reserved[kind],
          scope,
          ownerId,
          name,
          used: used[kind],
          limit,
          until: period.until,
        } as const;
      }
    }
  }

  function requireRoom(limited: readonly Limited[], accountId: string, most: Spent, at: number): "free" | "busy" {
    let isBusy = false;
    for (const { kind, reserved, ...state } of each(limited, accountId, at)) {
      if (state.used + most[kind] > state.limit) throw overBudget(state, most[kind]);
      isBusy ||= state.used + reserved + most[kind] > state.limit;
    }
    return isBusy ? "busy" : "free";
  }

  return {
    reserve({ accountId }, limited, most, at) {
      if (requireRoom(limited, accountId, most, at) === "busy") return "busy";
      const held = new Set<Counter>();
      for (const { counter } of each(limited, accountId, at)) held.add(counter);
      const change = (sign: 1 | -1) => {
        for (const { reserved } of held) {
          reserved.tokens += sign * most.tokens;
          reserved.cost += sign * most.cost;
        }
        if (sign < 0) held.clear();
      };
      change(1);
      return { release: () => change(-1) };
    },
    require: (...asked) => void requireRoom(...asked),
    add({ accountId, instanceId, agentId, ofHost, rootRunId }, spent, at) {
      if (counters.size === 0) return;
      const owners: [Scope, string | null][] = [
        ["account", accountId],
        ["host", ofHost ? accountId : null],
        ["instance", instanceId],
        ["agent", agentId],
        ["message", rootRunId],
      ];
      for (const period of [dayAt(at), monthAt(at), ALWAYS]) {
        for (const [scope, ownerId] of owners) {
          const counter = ownerId === null ? undefined : counters.get(keyOf(scope, ownerId, period));
          if (counter === undefined) continue;
          counter.used.tokens += spent.tokens;
          counter.used.cost += spent.cost;
        }
      }
    },
    nearlyUsed(limited, accountId, at) {
      const all = limited.length === 0 ? [] : [...each(limited, accountId, at)];
      return all.filter((state) => isOfOwner(state)).filter(({ used, limit }) => used >= limit * WARN_AT);
    },
  };
}

const isOfOwner = <State extends LimitState>(state: State): state is State & LimitState<ModelLimitName> =>
  state.name !== "tokensPerMessage";

const OWNERS: Record<Scope, string> = {
  host: "the account",
  account: "the account",
  instance: "the instance",
  agent: "the agent",
  message: "what was asked of other agents for one message",
};
const REMEDIES: Record<Scope, string> = {
  host: "ask the host's operator for more",
  account: "raise the limit (PATCH /v1/auth/me)",
  instance: "raise the instance's limit",
  agent: "raise the agent's limit",
  message: "answer with what there is, or ask for less at once",
};

function overBudget({ scope, name, used, limit, until }: LimitState, most: number): ModelError {
  const unit = isOfTokens(name) ? "tokens" : "USD";
  const amount = (value: number) => (isOfTokens(name) ? String(value) : formatMoney(BigInt(value)));
  const period = periodOf(name);
  const when = { day: " today", month: " this month", always: "" }[period];
  const state = `${name}: ${OWNERS[scope]} has used ${amount(used)} of ${amount(limit)} ${unit}${when}`;
  const told = `${state}, and this may take ${amount(most)} more: ${REMEDIES[scope]}`;
  if (period === "always") return new ModelError("budget_exceeded", told);
  return new ModelError("budget_exceeded", `${told}, or try again after ${isoTime(until)}`, { retryAt: until });
}

function periodOf(name: LimitName): "day" | "month" | "always" {
  if (name === "tokensPerMessage") return "always";
  return isOfDay(name) ? "day" : "month";
}
