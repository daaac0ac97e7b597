import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { pauseAfter } from "../storage/background-work.ts";
import type { Store } from "../storage/store.ts";
import { createClockSteps } from "./clock-steps.ts";
import type { Deciding } from "./deciding.ts";
import type { Outcomes } from "./outcome.ts";
import type { ScheduleQueries } from "./queries.ts";
import type { Schedule, Slot } from "./schema.ts";

/** Schedules that are decided in one commit, and for how long it may go on: some take a multiple of others' time. */
const AT_ONCE = 20;
const SLICE_MS = 4;
/** The clock may jump, and another process may change the database. */
const CHECK_EVERY_MS = 10_000;
const RETRY_MS = 5_000;

export interface ScheduleTimerParts {
  store: Store;
  clock: Clock;
  log: Log;
  queries: ScheduleQueries;
  deciding: Deciding;
  outcomes: Outcomes;
}

export interface ScheduleTimer {
  /** Starts to look when something is due. */
  run(): void;
  /** Looks again when the next is due: a schedule has changed. */
  changed(): void;
  /** Decides about everything that is due now. */
  tick(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the runs of schedules when their times come. */
export function createScheduleTimer(parts: ScheduleTimerParts): ScheduleTimer {
  const { store, clock, log, queries, deciding, outcomes } = parts;
  const clockSteps = createClockSteps(clock, queries);
  let timer: Timer | undefined;
  let isRunning = false;
  let isTicking = false;
  let ticking: Promise<void> = Promise.resolve();

  /** Returns whether there may be more. */
  function decideSome(): boolean {
    const startedMs = performance.now();
    const due = queries.due(clock.now(), AT_ONCE);
    let decided = 0;
    for (const schedule of due) {
      for (const slot of decide(schedule)) if (slot.status === "failed") outcomes.failed(slot);
      decided++;
      if (performance.now() - startedMs >= SLICE_MS) break;
    }
    return decided < due.length || due.length === AT_ONCE;
  }

  /** One that cannot be started holds up no other. */
  function decide(schedule: Schedule): Slot[] {
    try {
      return store.transaction(() => deciding.decide(schedule));
    } catch (err) {
      if (!store.sqlite.inTransaction) throw err;
      log.error({ err, scheduleId: schedule.scheduleId }, "a schedule's run could not be started");
      return deciding.giveUp(schedule);
    }
  }

  async function tick(): Promise<void> {
    isTicking = true;
    try {
      await decideAll();
    } finally {
      isTicking = false;
    }
  }

  async function planAgain(): Promise<void> {
    for (let after: string | null = ""; after !== null; ) {
      const from: string = after;
      const startedMs = performance.now();
      after = await store.commitSoon(() => clockSteps.planAgain(from, AT_ONCE), "process");
      if (after !== null) await pauseAfter(performance.now() - startedMs);
    }
  }

  async function decideAll(): Promise<void> {
    if (clockSteps.isSetBack()) await planAgain();
    for (let hasMore = true; hasMore; ) {
      const startedMs = performance.now();
      hasMore = await store.commitSoon(decideSome, "process");
      // Thousands that are due at nine o'clock must not hold up requests.
      if (hasMore) await pauseAfter(performance.now() - startedMs);
    }
  }

  function arm(afterMs: number): void {
    clearTimeout(timer);
    if (!isRunning) return;
    timer = setTimeout(() => {
      ticking = tick().then(
        () => arm(delayMs()),
        (err) => {
          log.error({ err }, "schedules could not be decided; they will be retried");
          arm(RETRY_MS);
        },
      );
    }, afterMs);
    timer.unref();
  }

  function delayMs(): number {
    const soonest = queries.soonest();
    return soonest === null ? CHECK_EVERY_MS : Math.min(CHECK_EVERY_MS, Math.max(0, soonest - clock.now()));
  }

  return {
    tick,
    run() {
      isRunning = true;
      arm(0);
    },
    // A tick looks again when it has ended.
    changed() {
      if (!isTicking) arm(delayMs());
    },
    async stop() {
      isRunning = false;
      clearTimeout(timer);
      await ticking;
    },
  };
}
