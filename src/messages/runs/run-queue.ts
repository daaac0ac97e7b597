import { createFairQueue } from "../../lib/fair-queue.ts";
import { createTurnBudget } from "../../lib/turn-budget.ts";
import type { Host } from "../../runtime/host.ts";
import type { Run } from "../schema.ts";
import type { ActiveRun, NextRun } from "./active-runs.ts";

export interface RunQueueParts {
  /** The agent's next run; undefined if none is left, or as many as allowed are in progress. */
  nextRun(agentId: string): NextRun | undefined;
  /** The account whose places an instance's runs take; undefined for a deleted instance. */
  accountOf(instanceId: string): string | undefined;
  /** Whether the account has a place for one more run. */
  hasPlace: Host["hasPlace"];
  reserve: Host["reserve"];
  /** Starts a run that has a place; returns false if its instance is not running. Never throws. */
  start(run: Run): boolean;
  /** Begins a run that was written as started, or releases its place. Never throws. */
  begin(current: ActiveRun): void;
  /** Called with a run for which no place can be reserved, because a worker cannot be started. */
  onFailure(run: Run, error: unknown): void;
  /** How much of one event loop turn may be spent on starting runs. */
  startsMs?: number | undefined;
}

export interface RunQueue {
  /** Reserves a place for a run of an agent that has no other. Returns false while others wait for one. */
  takePlace(accountId: string, instanceId: string): boolean;
  /** To be called once a run that was written as started is committed: it begins ahead of those that need a place. */
  begin(current: ActiveRun, accountId: string): void;
  /** Adds an agent that has a queued run: the run starts now if there is a place for it, else when its turn comes. */
  add(agentId: string, accountId: string): void;
  /** The same, for a run to be resumed, or one that an earlier process or a failed commit left unfinished. */
  addUnfinished(agentId: string, instanceId: string): void;
  /** To be called when a run of the agent is over: the next one may start. */
  startNext(agentId: string, instanceId: string): void;
  /** Gives free places to waiting agents: accounts take turns, and the agents of one are served in order of arrival. */
  serve(): void;
}

/**
 * Starting a run reads its prompt. If one commit ends many runs, their successors do not all start in the same turn.
 */
const STARTS_MS = 2;

export function createRunQueue(parts: RunQueueParts): RunQueue {
  const { nextRun, accountOf, hasPlace, reserve, start, begin, onFailure, startsMs = STARTS_MS } = parts;
  /** Runs that have a place and have not begun. */
  const placed = createFairQueue<ActiveRun>();
  /** Agents with a run that needs a place. */
  const line = createFairQueue<string>();
  /** Agents that may have queued runs; only for these does the end of a run query the next one. */
  const queued = new Set<string>();
  const time = createTurnBudget(startsMs);
  let servedLater = false;

  /** `"more"`: started, and another run of the agent may start. */
  function tryStart({ run, hasMore }: NextRun, accountId: string): "no place" | "done" | "more" {
    try {
      if (reserve(accountId, run.instanceId) !== "taken") return "no place";
    } catch (error) {
      onFailure(run, error);
      return "done";
    }
    return time.spend(() => start(run)) && hasMore ? "more" : "done";
  }

  function serveLater(): void {
    if (servedLater) return;
    servedLater = true;
    setImmediate(() => {
      servedLater = false;
      serve();
    });
  }

  function serve(): void {
    placed.serve((current) => {
      if (!time.hasTime()) {
        serveLater();
        return "skip owner";
      }
      time.spend(() => begin(current));
      return "taken";
    });
    const again: { agentId: string; accountId: string }[] = [];
    line.serve((agentId, accountId) => {
      if (!time.hasTime()) {
        serveLater();
        return "skip owner";
      }
      if (!hasPlace(accountId)) return "skip owner";
      const next = nextRun(agentId);
      // Cancelled meanwhile, or as many as allowed are in progress.
      if (next === undefined) return "taken";
      const started = tryStart(next, accountId);
      if (started === "no place") return "skip owner";
      if (next.isOnly) queued.delete(agentId);
      if (started === "more") again.push({ agentId, accountId });
      return "taken";
    });
    // The agent's next run queues behind the account's other agents.
    for (const { agentId, accountId } of again) line.add(accountId, agentId);
    if (again.length > 0) serveLater();
  }

  function add(agentId: string, accountId: string): void {
    queued.add(agentId);
    line.add(accountId, agentId);
    serve();
  }

  function addUnfinished(agentId: string, instanceId: string): void {
    const accountId = accountOf(instanceId);
    if (accountId !== undefined) add(agentId, accountId);
  }

  return {
    takePlace(accountId, instanceId) {
      try {
        return line.isEmpty() && reserve(accountId, instanceId) === "taken";
      } catch {
        // It is tried again when the run's turn comes, and the run fails if that fails too.
        return false;
      }
    },
    begin(current, accountId) {
      placed.add(accountId, current);
      serve();
    },
    add,
    addUnfinished,
    startNext(agentId, instanceId) {
      if (queued.has(agentId)) addUnfinished(agentId, instanceId);
    },
    serve,
  };
}
