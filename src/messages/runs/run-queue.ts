import { createTurnBudget } from "../../lib/turn-budget.ts";
import { createFairQueue } from "../../limits/fair-queue.ts";
import type { Host } from "../../runtime/host.ts";
import type { Run } from "../schema.ts";

export interface RunQueueParts {
  /** The run that comes next for an agent; undefined where one is in progress, or none is left. */
  nextRun(agentId: string): Run | undefined;
  /** The account that a run's place is taken for; undefined for an instance that is gone. */
  accountOf(instanceId: string): string | undefined;
  reserve: Host["reserve"];
  /** Takes up a run that has a place. It never throws. */
  start(run: Run): void;
  /** A run for which no place will ever be had. */
  onFailure(run: Run, error: unknown): void;
}

export interface RunQueue {
  /** Starts the agent's next run where there is a place for it; else its agent waits for its turn. */
  dispatch(agentId: string): void;
  /** Gives the places that are free to who waits: accounts in turn, the agents of one in the order they came. */
  serve(): void;
}

/** To start a run is to read its prompt. Where one commit ends many, their next ones do not all start in the same turn. */
const STARTS_MS = 2;

export function createRunQueue({ nextRun, accountOf, reserve, start, onFailure }: RunQueueParts): RunQueue {
  /** Agents with a run that waits for a place. */
  const line = createFairQueue<string>();
  const time = createTurnBudget(STARTS_MS);
  let servedLater = false;

  function tryStart(run: Run, accountId: string): boolean {
    try {
      if (reserve(accountId, run.instanceId) !== "taken") return false;
    } catch (error) {
      onFailure(run, error);
      return true;
    }
    time.spend(() => start(run));
    return true;
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
    line.serve((agentId, accountId) => {
      if (!time.hasTime()) {
        serveLater();
        return "skip owner";
      }
      const run = nextRun(agentId);
      // Cancelled meanwhile, or started by what came after it.
      return run === undefined || tryStart(run, accountId) ? "taken" : "skip owner";
    });
  }

  return {
    dispatch(agentId) {
      const run = nextRun(agentId);
      const accountId = run && accountOf(run.instanceId);
      if (!run || !accountId) return;
      // Who waits already comes first.
      if (line.isEmpty() && time.hasTime() && tryStart(run, accountId)) return;
      line.add(accountId, agentId);
      serve();
    },
    serve,
  };
}
