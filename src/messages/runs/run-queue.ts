import { createTurnBudget } from "../../lib/turn-budget.ts";
import { createFairQueue } from "../../limits/fair-queue.ts";
import type { Host } from "../../runtime/host.ts";
import type { Run } from "../schema.ts";
import type { ActiveRun, NextRun } from "./active-runs.ts";

export interface RunQueueParts {
  /** The run that comes next for an agent; undefined where as many as may be are in progress, or none is left. */
  nextRun(agentId: string): NextRun | undefined;
  /** The account that an instance's runs take their places for; undefined for an instance that is gone. */
  accountOf(instanceId: string): string | undefined;
  /** Whether the account has a place for one more run. */
  hasPlace: Host["hasPlace"];
  reserve: Host["reserve"];
  /** Takes up a run that has a place; false where its instance does not run. It never throws. */
  start(run: Run): boolean;
  /** Takes up a run that was written as started, or gives its place back. It never throws. */
  begin(current: ActiveRun): void;
  /** A run for which no place will ever be had. */
  onFailure(run: Run, error: unknown): void;
  /** How long starting runs may hold one turn of the event loop. */
  startsMs?: number | undefined;
}

export interface RunQueue {
  /** Takes a place for a run of an agent that has no other, unless others wait for one. */
  takePlace(accountId: string, instanceId: string): boolean;
  /** A run that has its place is committed: it begins, before any that waits for one. */
  begin(current: ActiveRun, accountId: string): void;
  /** A run of the agent has been queued: it starts now if there is a place for it, or else when its turn comes. */
  add(agentId: string, accountId: string): void;
  /** The agent has unfinished runs that an earlier process, or a commit that failed, left. */
  takeUp(agentId: string, instanceId: string): void;
  /** A run of the agent is over: the one that waited for it may start. */
  goOn(agentId: string, instanceId: string): void;
  /** Gives the places that are free to who waits: accounts in turn, the agents of one in the order they came. */
  serve(): void;
}

/** To start a run is to read its prompt. Where one commit ends many, their next ones do not all start in the same turn. */
const STARTS_MS = 2;

export function createRunQueue(parts: RunQueueParts): RunQueue {
  const { nextRun, accountOf, hasPlace, reserve, start, begin, onFailure, startsMs = STARTS_MS } = parts;
  /** Runs that have a place. */
  const placed = createFairQueue<ActiveRun>();
  /** Agents with a run that waits for a place. */
  const line = createFairQueue<string>();
  /** Agents that may have queued runs: for no other does the end of a run ask the database for the next one. */
  const queued = new Set<string>();
  const time = createTurnBudget(startsMs);
  let servedLater = false;

  /** `"more"`: started, and another one of the agent's may start. */
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
      // Cancelled meanwhile, or as many as may be are in progress.
      if (next === undefined) return "taken";
      const started = tryStart(next, accountId);
      if (started === "no place") return "skip owner";
      if (next.isOnly) queued.delete(agentId);
      if (started === "more") again.push({ agentId, accountId });
      return "taken";
    });
    // Its next one comes behind the account's other agents.
    for (const { agentId, accountId } of again) line.add(accountId, agentId);
    if (again.length > 0) serveLater();
  }

  function add(agentId: string, accountId: string): void {
    queued.add(agentId);
    line.add(accountId, agentId);
    serve();
  }

  function takeUp(agentId: string, instanceId: string): void {
    const accountId = accountOf(instanceId);
    if (accountId !== undefined) add(agentId, accountId);
  }

  return {
    takePlace(accountId, instanceId) {
      try {
        return line.isEmpty() && reserve(accountId, instanceId) === "taken";
      } catch {
        // It fails again when the run's turn comes, and the run with it.
        return false;
      }
    },
    begin(current, accountId) {
      placed.add(accountId, current);
      serve();
    },
    add,
    takeUp,
    goOn(agentId, instanceId) {
      if (queued.has(agentId)) takeUp(agentId, instanceId);
    },
    serve,
  };
}
