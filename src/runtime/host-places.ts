import { createPlaces, type Places } from "../limits/places.ts";

/** What may be at work at once (api.md section 1, Limits). */
export interface HostBounds {
  /** Of all accounts: awake workers, and runs, each of which has one model call at most. */
  workers: number;
  runs: number;
  /** Of each account. */
  workersOfOne: number;
  runsOfOne: number;
}

export interface HostPlaces {
  runs: Pick<Places, "take">;
  workers: Pick<Places, "take">;
  giveRuns(accountId: string, count?: number): void;
  giveWorker(accountId: string): void;
}

/** The places of runs and workers. `onRoom` is told once for each turn of the event loop in which some became free. */
export function createHostPlaces(bounds: HostBounds, onRoom: () => void): HostPlaces {
  const runs = createPlaces({ total: bounds.runs, each: bounds.runsOfOne });
  const workers = createPlaces({ total: bounds.workers, each: bounds.workersOfOne });
  let told = false;

  function tellRoom(): void {
    if (told) return;
    told = true;
    setImmediate(() => {
      told = false;
      onRoom();
    });
  }

  return {
    runs,
    workers,
    giveRuns(accountId, count) {
      runs.give(accountId, count);
      tellRoom();
    },
    giveWorker(accountId) {
      workers.give(accountId);
      tellRoom();
    },
  };
}

export interface IdleWorker {
  accountId: string;
  lastUsedMs: number;
}

/** The one to put to sleep for this account: the longest idle of its own, or where it has none, of all. */
export function longestIdle<T extends IdleWorker>(idle: Iterable<T>, accountId: string): T | undefined {
  let oldest: T | undefined;
  const isOwn = (worker: T) => worker.accountId === accountId;
  for (const worker of idle) {
    const before =
      oldest === undefined || (isOwn(worker) === isOwn(oldest) ? worker.lastUsedMs < oldest.lastUsedMs : isOwn(worker));
    if (before) oldest = worker;
  }
  return oldest;
}
