import { createSlots, type Slots } from "../limits/slots.ts";
import { createTokenBuckets } from "../limits/token-buckets.ts";

/** What may be at work at once (docs/contract/api.md, Limits). */
export interface HostBounds {
  /** Of all accounts: awake workers, and runs, each of which has one model call at most. */
  workers: number;
  runs: number;
  /** Of each account. */
  workersOfOne: number;
  runsOfOne: number;
}

export interface HostPlaces {
  runs: Pick<Slots, "acquire" | "release" | "shortfall">;
  workers: Pick<Slots, "acquire" | "shortfall">;
  /** Gives back what was used, and tells of it. */
  giveRuns(accountId: string, count?: number): void;
  giveWorker(accountId: string): void;
  /** Whether the account may start one more worker now; where it may not, `onRoom` is told when it may. */
  mayWake(accountId: string): boolean;
  /** Notes that it did. */
  woke(accountId: string): void;
}

/** Workers that an account may start: some at once, then so many a second. Each takes a few milliseconds of every core. */
const WAKES_AT_ONCE = 16;
const WAKES_A_SECOND = 8;

/** The places of runs and workers. `onRoom` is told once for each turn of the event loop in which some became free. */
export function createHostPlaces(bounds: HostBounds, nowMs: () => number, onRoom: () => void): HostPlaces {
  const runs = createSlots({ total: bounds.runs, maxPerOwner: bounds.runsOfOne });
  const workers = createSlots({ total: bounds.workers, maxPerOwner: bounds.workersOfOne });
  const wakeRate = { perSecond: WAKES_A_SECOND, burst: WAKES_AT_ONCE };
  const wakes = createTokenBuckets(() => nowMs() / 1_000);
  let told = false;
  let awaited = false;

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
      runs.release(accountId, count);
      tellRoom();
    },
    giveWorker(accountId) {
      workers.release(accountId);
      tellRoom();
    },
    mayWake(accountId) {
      const wait = wakes.wait(accountId, wakeRate);
      if (wait === 0) return true;
      if (!awaited) {
        awaited = true;
        setTimeout(() => {
          awaited = false;
          onRoom();
        }, wait * 1_000).unref();
      }
      return false;
    },
    woke: (accountId) => wakes.charge(accountId, wakeRate, 1),
  };
}

export interface IdleWorker {
  accountId: string;
  lastUsedMs: number;
}

/**
 * The one to put to sleep for this account: the longest idle of its own; else of all, where so many sleeping make room for
 * it. `lacking` is how many would have to.
 */
export function sleepsFor<T extends IdleWorker>(idle: readonly T[], accountId: string, lacking: number): T | undefined {
  const own = idle.filter((worker) => worker.accountId === accountId);
  if (own.length > 0) return longestIdle(own);
  return lacking <= idle.length ? longestIdle(idle) : undefined;
}

const longestIdle = <T extends IdleWorker>(idle: readonly T[]): T | undefined =>
  idle.reduce<T | undefined>(
    (oldest, worker) => (oldest && oldest.lastUsedMs <= worker.lastUsedMs ? oldest : worker),
    undefined,
  );
