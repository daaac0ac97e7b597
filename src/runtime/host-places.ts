import { createSlots, type Slots } from "../limits/slots.ts";
import { createWorkerStarts, type WorkerStarts } from "./worker-starts.ts";

/** How many workers and runs may be active at once (docs/contract/api.md, Limits). */
export interface HostBounds {
  /** All accounts together: awake workers, and runs, each of which makes at most one model call at a time. */
  workers: number;
  runs: number;
  /** Each account. */
  workersOfOne: number;
  /** Of each account's awake workers, how many may have nothing to do: each takes 2 to 3 MiB. */
  idleOfOne: number;
  runsOfOne: number;
}

export interface HostPlaces {
  runs: Pick<Slots, "acquire" | "release" | "shortfall">;
  workers: Pick<Slots, "acquire" | "shortfall" | "inUse">;
  /** Before a worker takes its place: when it may start. */
  starts: WorkerStarts;
  /** Releases places, and calls `onRoom` soon after. */
  releaseRuns(accountId: string, count?: number): void;
  releaseWorker(accountId: string): void;
}

/** The places of runs and workers. `onRoom` is called once for each event loop turn in which some became free. */
export function createHostPlaces(bounds: HostBounds, nowMs: () => number, onRoom: () => void): HostPlaces {
  const runs = createSlots({ total: bounds.runs, maxPerOwner: bounds.runsOfOne });
  const workers = createSlots({ total: bounds.workers, maxPerOwner: bounds.workersOfOne });
  const starts = createWorkerStarts(nowMs, announceRoom);
  let announced = false;

  function announceRoom(): void {
    if (announced) return;
    announced = true;
    setImmediate(() => {
      announced = false;
      onRoom();
    });
  }

  return {
    runs,
    workers,
    starts,
    releaseRuns(accountId, count) {
      runs.release(accountId, count);
      announceRoom();
    },
    releaseWorker(accountId) {
      workers.release(accountId);
      announceRoom();
    },
  };
}

export interface IdleWorker {
  accountId: string;
  lastUsedMs: number;
}

/**
 * The worker to put to sleep for this account: its own longest idle one, or else the longest idle of all, if enough are
 * idle to make room. `lacking` is how many would have to sleep.
 */
export function sleepsFor<T extends IdleWorker>(idle: readonly T[], accountId: string, lacking: number): T | undefined {
  const own = idle.filter((worker) => worker.accountId === accountId);
  if (own.length > 0) return longestIdle(own);
  return lacking <= idle.length ? longestIdle(idle) : undefined;
}

/** The worker to put to sleep if more than `kept` of this account's are idle. */
export function sleepsOf<T extends IdleWorker>(idle: readonly T[], accountId: string, kept: number): T | undefined {
  const own = idle.filter((worker) => worker.accountId === accountId);
  return own.length > kept ? longestIdle(own) : undefined;
}

const longestIdle = <T extends IdleWorker>(idle: readonly T[]): T | undefined =>
  idle.reduce<T | undefined>(
    (oldest, worker) => (oldest && oldest.lastUsedMs <= worker.lastUsedMs ? oldest : worker),
    undefined,
  );
