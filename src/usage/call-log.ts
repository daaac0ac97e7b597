import { boundedSum } from "../lib/bounded-sum.ts";
import { dayOf } from "../lib/calendar.ts";
import { withTimeout } from "../lib/concurrency.ts";
import type { RunTally } from "../runtime/model-call.ts";
import type { Store } from "../storage/store.ts";
import type { Scope } from "./budgets.ts";
import type { Period, Spent, UsageQueries } from "./queries.ts";
import { type DayTotals, type StoredCall, USAGE_KINDS, type UsageKind } from "./schema.ts";

/** A call that has ended, with what it held until it is written. */
export interface EndedCall {
  call: Omit<StoredCall, "runs">;
  reservationId: number | null;
  tally: RunTally | undefined;
  /** Called in the transaction in which the call is written. */
  written(): void;
}

/**
 * The calls of models, as they are written. One that has ended waits for the next commit of its run, so that it costs none
 * of its own: what a run is seen to have done, it has also paid for. Should the process die before, what the call held is
 * still there (`recover`).
 */
export interface CallLog {
  /** Says that a call goes out: `close` waits for it. Call what it returns once the call has ended and is added. */
  begin(): () => void;
  add(ended: EndedCall): void;
  /** Writes the calls of a run that have ended. Call it in a transaction. Returns them. */
  writeOf(runId: string): readonly EndedCall[];
  /** Writes them in a commit of their own: for a run that is written nowhere. */
  writeSoon(runId: string): void;
  /**
   * The same for calls that were cut off. If their run has ended before them, what they took is added to it; if it goes
   * on, they wait for its next commit.
   */
  writeCutOff(runId: string | null): void;
  /** What was spent in a period, with what waits to be written. */
  spent(accountId: string, scope: Scope, ownerId: string, period: Period): Spent;
  /** Adds up the calls that are written. Resolves when the totals have all of them. */
  total(): Promise<void>;
  /**
   * After a start, before runs go on: calls that were in progress when the last process died count with the most that they
   * may have taken, to their runs too. Returns these.
   */
  recover(): ReadonlySet<string>;
  /** From time to time adds calls up, and tries again to write those that could not be written. */
  run(): void;
  /**
   * Writes what waits, with the calls that the stop has cut off: each has taken what is known of it. One that does not
   * end within a second counts like those of a process that died.
   */
  close(): Promise<void>;
}

const TOTAL_MS = 10_000;
const CUT_OFF_MS = 1_000;
/** Calls added up in one commit, with requests in between. */
const AT_ONCE = 500;
/** For calls that belong to no run. */
const NO_RUN = "";
const KIND_OF: Record<Exclude<Scope, "message">, Exclude<UsageKind, "model">> = {
  account: "day",
  host: "host",
  instance: "instance",
  agent: "agent",
};

export function createCallLog(
  store: Store,
  queries: UsageQueries,
  log: { error(fields: object, text: string): void },
  tickMs = TOTAL_MS,
): CallLog {
  /** By run. */
  const waiting = new Map<string, readonly EndedCall[]>();
  /** Those of `waiting` whose own commit has failed: their runs may not commit anything more. */
  const overdue = new Set<string>();
  let open = 0;
  let onAllEnded: (() => void) | undefined;
  let isTotalled = false;
  let totalling: Promise<void> | null = null;
  let timer: ReturnType<typeof setInterval> | undefined;

  function writeOf(runId: string): readonly EndedCall[] {
    const ended = waiting.get(runId);
    if (ended === undefined) return [];
    waiting.delete(runId);
    const tally = ended.at(-1)?.tally;
    // The run counts with the call that has answered.
    const counts = tally?.isCounted === false;
    if (tally) tally.isCounted = true;
    store.afterCommit(
      () => {},
      () => {
        waiting.set(runId, [...ended, ...(waiting.get(runId) ?? [])]);
        if (tally && counts) tally.isCounted = false;
      },
    );
    for (const [at, { call, reservationId, written }] of ended.entries()) {
      queries.insertCall({ ...call, runs: counts && at === ended.length - 1 ? 1 : 0 });
      if (reservationId !== null) queries.settle(reservationId);
      written();
    }
    isTotalled = false;
    return ended;
  }

  /** For calls that no commit of their run writes. */
  function writeLate(key: string): void {
    for (const { call } of writeOf(key)) queries.addToRun(call);
  }

  const writeUnlessGoingOn = (key: string): void => void (queries.isUnfinished(key) || writeLate(key));

  function commitSoon(key: string, write: (key: string) => void): void {
    overdue.delete(key);
    const [first] = waiting.get(key) ?? [];
    if (first === undefined) return;
    store
      .commitSoon(() => write(key), "process", key === NO_RUN ? "" : first.call.accountId)
      .catch((err: unknown) => {
        overdue.add(key);
        log.error({ err, runId: first.call.runId }, "model calls could not be written; they are tried again");
      });
  }

  /** Adds up one commit's worth. Returns whether there are more. */
  function totalSome(): boolean {
    const calls = queries.notTotalled(AT_ONCE);
    const last = calls.at(-1);
    if (last === undefined) return false;
    const totals = new Map<string, DayTotals>();
    for (const call of calls) for (const kind of USAGE_KINDS) addTo(totals, kind, call);
    for (const row of totals.values()) queries.addTotals(row);
    queries.setMark(last.callSeq);
    return calls.length === AT_ONCE;
  }

  async function totalAll(): Promise<void> {
    isTotalled = true;
    try {
      while (await store.commitSoon(totalSome, "process"));
    } catch (error) {
      isTotalled = false;
      throw error;
    }
  }

  function total(): Promise<void> {
    totalling ??= (isTotalled ? Promise.resolve() : totalAll()).finally(() => {
      totalling = null;
    });
    return totalling;
  }

  /** By the runs that this one has caused. Their costs have no limit. */
  function spentOnMessage(rootRunId: string): Spent {
    let tokens = 0;
    for (const run of queries.runsCausedBy(rootRunId)) {
      tokens += run.tokens;
      for (const { call } of waiting.get(run.runId) ?? []) tokens += call.promptTokens + call.completionTokens;
    }
    return { tokens, cost: 0 };
  }

  return {
    begin() {
      open++;
      return () => {
        if (--open === 0) onAllEnded?.();
      };
    },
    add(ended) {
      const key = ended.call.runId ?? NO_RUN;
      waiting.set(key, [...(waiting.get(key) ?? []), ended]);
    },
    writeOf,
    writeSoon: (runId) => commitSoon(runId, writeOf),
    writeCutOff: (runId) => commitSoon(runId ?? NO_RUN, writeUnlessGoingOn),
    spent(accountId, scope, ownerId, period) {
      if (scope === "message") return spentOnMessage(ownerId);
      const kind = KIND_OF[scope];
      const name = kind === "instance" || kind === "agent" ? ownerId : "";
      const { tokens, cost } = queries.spent(accountId, kind, name, period);
      const spent = { tokens, cost };
      for (const { call } of [...waiting.values()].flat()) {
        const isIn = call.createdAt >= period.from && call.createdAt < period.until;
        if (!isIn || call.accountId !== accountId || nameIn(kind, call) !== name) continue;
        spent.tokens += call.promptTokens + call.completionTokens;
        spent.cost += call.cost ?? 0;
      }
      return spent;
    },
    total,
    recover() {
      const left = queries.reservations();
      if (left.length === 0) return new Set();
      store.transaction(() => {
        for (const { reservationId, ...reserved } of left) {
          const call = { ...reserved, outcome: "interrupted", runs: 0, cachedTokens: 0, estimated: true } as const;
          queries.insertCall(call);
          queries.addToRun(call);
          queries.settle(reservationId);
        }
      });
      return new Set(left.flatMap(({ runId }) => runId ?? []));
    },
    run() {
      timer = setInterval(() => {
        for (const key of new Set([NO_RUN, ...overdue])) commitSoon(key, writeUnlessGoingOn);
        total().catch((err: unknown) => log.error({ err }, "model calls could not be added up; they are tried again"));
      }, tickMs);
      timer.unref();
    },
    async close() {
      clearInterval(timer);
      await totalling?.catch(() => {});
      const { promise, resolve } = Promise.withResolvers<void>();
      onAllEnded = resolve;
      if (open > 0) await withTimeout(promise, CUT_OFF_MS);
      await Promise.allSettled([...waiting.keys()].map((key) => store.commitSoon(() => writeLate(key), "process")));
    },
  };
}

/** The name under which a call belongs to the totals of a kind; null if it does not. */
function nameIn(kind: UsageKind, { agentId, instanceId, model, ofHost }: Omit<StoredCall, "runs">): string | null {
  switch (kind) {
    case "agent":
      return agentId;
    case "instance":
      return instanceId;
    case "model":
      return model;
    case "host":
      return ofHost ? "" : null;
    case "day":
      return "";
  }
}

function addTo(totals: Map<string, DayTotals>, kind: UsageKind, call: StoredCall): void {
  const name = nameIn(kind, call);
  if (name === null) return;
  const { accountId, runs, promptTokens, cachedTokens, completionTokens, cost } = call;
  const day = dayOf(call.createdAt);
  const key = `${accountId} ${kind} ${day} ${name}`;
  const row = totals.get(key);
  if (row === undefined) {
    const figures = { runs, modelCalls: 1, promptTokens, cachedTokens, completionTokens, cost };
    totals.set(key, { accountId, kind, name, day, ...figures });
    return;
  }
  row.runs += runs;
  row.modelCalls++;
  row.promptTokens = boundedSum(row.promptTokens, promptTokens);
  row.cachedTokens = boundedSum(row.cachedTokens, cachedTokens);
  row.completionTokens = boundedSum(row.completionTokens, completionTokens);
  if (cost !== null) row.cost = boundedSum(row.cost ?? 0, cost);
}
