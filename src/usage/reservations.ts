import type { Clock } from "../lib/clock.ts";
import { isOfTokens, MODEL_LIMIT_NAMES, type ModelLimitName } from "../limits/model-limits.ts";
import { costOfTokens, type ModelPrices } from "../limits/model-prices.ts";
import { type ModelEngine, ModelError } from "../models/engine.ts";
import type { ModelCall } from "../runtime/model-call.ts";
import { mostPromptTokens } from "../runtime/tokens.ts";
import type { Store } from "../storage/store.ts";
import type { Budgets, Caller, Held, Limited, LimitState } from "./budgets.ts";
import type { LimitsFor } from "./limits-for.ts";
import type { Spent, UsageQueries } from "./queries.ts";
import type { Reservation } from "./schema.ts";

/** A call that may go out. */
export interface OpenCall {
  model: string;
  ofHost: boolean;
  createdAt: number;
  /** Its row, which outlives this process; null until that is written. */
  readonly reservationId: number | null;
  /** Counts what it took, and gives back what it held. */
  settle(spent: Spent): void;
  /** Warns of limits that are nearly used. Call it in the transaction in which the call is written. */
  written(): void;
}

/** Who calls a model, as far as everybody knows it. */
type Whose = Pick<Caller, "accountId" | "instanceId" | "agentId">;

export interface Reservations {
  /**
   * Reserves what a call may take: its whole prompt and the longest answer. The reservation is on disk when this resolves.
   * It waits while the call would fit but for what others hold. A call without a limit waits for nothing, and its row is
   * written beside it. Throws `ModelError`: `budget_exceeded`, or `forbidden` for a cost limit without a price.
   */
  open(
    call: ModelCall,
    model: string,
    answerTokens: number,
    engine: Pick<ModelEngine, "abilities">,
    signal: AbortSignal,
  ): OpenCall | Promise<OpenCall>;
  /** Throws as `open` does if not even the answer would fit. */
  requireRoom(whose: Whose, model: string, answerTokens: () => number): void;
  /** Calls that hold something now, and how often one was refused. */
  figures(): { held: number; waiting: number; refused: number };
}

export interface ReservationParts {
  store: Pick<Store, "commitSoon" | "afterCommit" | "readTogether">;
  clock: Clock;
  prices: ModelPrices;
  budgets: Budgets;
  queries: Pick<UsageQueries, "reserve">;
  limitsFor: LimitsFor;
  /** Whether the model is of a server that the instance brings. */
  isOwnServer(model: string, instanceId: string): boolean;
  /** Called in a transaction, with the limits that are nearly used. */
  warn(caller: Caller, states: readonly LimitState<ModelLimitName>[], at: number): void;
}

type TokensOfRow = Pick<Reservation, "promptTokens" | "completionTokens">;

/** The calls of an account that are being reserved. No limit is shared by accounts, so they wait for nobody else. */
interface Line {
  calls: number;
  /** How often something was given back since the line was opened. */
  releases: number;
  /** Wakes those that wait for it. */
  waiting: Set<() => void>;
}

/** Most calls of fast models are over by then: a row for each would cost as much as the call's own. */
const NOTED_AFTER_MS = 1_000;

export function createReservations(parts: ReservationParts): Reservations {
  const { store, clock, prices, budgets, queries, limitsFor, isOwnServer, warn } = parts;
  const figures = { held: 0, refused: 0 };
  /** By account. */
  const lines = new Map<string, Line>();

  /** Who calls, and the limits that apply. */
  function lookUp({ accountId, instanceId, agentId }: Whose, model: string, runId: string | null) {
    const ofHost = instanceId === null || !isOwnServer(model, instanceId);
    const caller = { accountId, instanceId, agentId, ofHost };
    const { limited, rootRunId } = limitsFor(caller, runId);
    return { caller: { ...caller, rootRunId }, limited };
  }

  function refuse<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      figures.refused++;
      throw error;
    }
  }

  const costOf = (model: string, tokens: TokensOfRow): number | null =>
    costOfTokens(prices.get(model), { ...tokens, cachedTokens: 0 });

  /** Throws `forbidden` if a cost is limited and nobody knows it: it might be anything. */
  function mostOf(limited: readonly Limited[], model: string, tokens: TokensOfRow): Spent {
    const cost = costOf(model, tokens);
    if (cost === null) requireNoCostLimit(limited, model);
    return { tokens: tokens.promptTokens + tokens.completionTokens, cost: cost ?? 0 };
  }

  async function inLine<T>(accountId: string, work: (line: Line) => Promise<T>): Promise<T> {
    const line = lines.get(accountId) ?? { calls: 0, releases: 0, waiting: new Set() };
    lines.set(accountId, line);
    line.calls++;
    try {
      return await work(line);
    } finally {
      if (--line.calls === 0) lines.delete(accountId);
    }
  }

  function giveBack(accountId: string, held: Held): void {
    held.release();
    const line = lines.get(accountId);
    if (line === undefined) return;
    line.releases++;
    for (const wake of [...line.waiting]) wake();
  }

  /** Resolves when another call of the account gives back what it held. */
  function nextRoom({ waiting }: Line, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    waiting.add(resolve);
    return promise.finally(() => {
      waiting.delete(resolve);
      signal.removeEventListener("abort", onAbort);
    });
  }

  function opened(caller: Caller, model: string, limited: readonly Limited[], held: Held | null, createdAt: number) {
    return {
      model,
      ofHost: caller.ofHost,
      createdAt,
      settle(spent: Spent) {
        budgets.add(caller, spent, createdAt);
        if (held === null) return;
        figures.held--;
        giveBack(caller.accountId, held);
      },
      written() {
        if (limited.length > 0) warn(caller, budgets.nearlyUsed(limited, caller.accountId, createdAt), createdAt);
      },
    };
  }

  async function reserve(
    call: ModelCall,
    model: string,
    caller: Caller,
    tokens: TokensOfRow,
    line: Line,
    signal: AbortSignal,
  ): Promise<OpenCall> {
    for (;;) {
      signal.throwIfAborted();
      let before = line.releases;
      const attempt = () => {
        before = line.releases;
        // Read again: limits may have changed while the call waited.
        const { limited } = limitsFor(caller, call.runId ?? null);
        const createdAt = clock.now();
        const held = budgets.reserve(caller, limited, mostOf(limited, model, tokens), createdAt);
        if (held === "busy") return null;
        store.afterCommit(
          () => {},
          () => giveBack(caller.accountId, held),
        );
        const reservationId = queries.reserve(rowOf(call, model, caller, tokens, costOf(model, tokens), createdAt));
        return { ...opened(caller, model, limited, held, createdAt), reservationId };
      };
      const open = await store.commitSoon(() => refuse(attempt), "full", caller.accountId);
      if (open !== null) {
        figures.held++;
        return open;
      }
      if (line.releases === before) await nextRoom(line, signal);
    }
  }

  /** A call without a limit: if it takes long, a row is there in case this process dies before the call is written. */
  function note(call: ModelCall, model: string, caller: Caller, mostTokens: () => TokensOfRow): OpenCall {
    const open = opened(caller, model, [], null, clock.now());
    let reservationId: number | null = null;
    let isSettled = false;
    const write = () => {
      if (isSettled) return;
      const tokens = mostTokens();
      const written = queries.reserve(rowOf(call, model, caller, tokens, costOf(model, tokens), open.createdAt));
      store.afterCommit(() => {
        reservationId = written;
      });
    };
    // If the disk refuses it, it refuses what the run writes next, which is told.
    const timer = setTimeout(
      () => void store.commitSoon(write, "process", caller.accountId).catch(() => {}),
      NOTED_AFTER_MS,
    );
    timer.unref();
    return {
      ...open,
      get reservationId() {
        return reservationId;
      },
      settle(spent) {
        isSettled = true;
        clearTimeout(timer);
        open.settle(spent);
      },
    };
  }

  return {
    open(call, model, answerTokens, engine, signal) {
      // The engine, too, asks whose server the model is of.
      store.readTogether();
      const { caller, limited } = lookUp(call, model, call.runId ?? null);
      const mostTokens = () => ({
        promptTokens: Math.min(mostPromptTokens(call), engine.abilities(model).contextTokens),
        completionTokens: answerTokens,
      });
      if (limited.length === 0) return note(call, model, caller, mostTokens);
      const tokens = mostTokens();
      return inLine(caller.accountId, (line) => reserve(call, model, caller, tokens, line, signal));
    },
    requireRoom(whose, model, answerTokens) {
      const { caller, limited } = lookUp(whose, model, null);
      if (limited.length === 0) return;
      refuse(() => {
        const most = mostOf(limited, model, { promptTokens: 1, completionTokens: answerTokens() });
        budgets.require(limited, caller.accountId, most, clock.now());
      });
    },
    figures: () => ({ ...figures, waiting: lines.values().reduce((sum, { waiting }) => sum + waiting.size, 0) }),
  };
}

/** The row of a call that goes out now, with the most that it may take. */
function rowOf(
  { runId, purpose }: ModelCall,
  model: string,
  { accountId, instanceId, agentId, ofHost }: Caller,
  tokens: TokensOfRow,
  cost: number | null,
  createdAt: number,
): Reservation {
  const whose = { accountId, instanceId, agentId, runId: runId ?? null };
  return { ...whose, model, purpose, ofHost, ...tokens, cost, createdAt };
}

function requireNoCostLimit(limited: readonly Limited[], model: string): void {
  const name = limited.flatMap(({ limits }) =>
    MODEL_LIMIT_NAMES.filter((name) => !isOfTokens(name) && limits[name] != null),
  )[0];
  if (name === undefined) return;
  throw new ModelError(
    "forbidden",
    `${name}: this host knows no price for the model ${model}, so what it costs cannot be limited; remove the limit, choose ` +
      "a model with a price, or ask the host's operator for one",
  );
}
