import type { Clock } from "../lib/clock.ts";
import type { ScheduleQueries } from "./queries.ts";
import { nextSlot } from "./recurrence.ts";
import { recurrenceOf } from "./schedules.ts";

/** Clocks are corrected by so much all the time. */
const STEP_MS = 60_000;
/** A time further ahead for which nothing was run is decided anew, even if it was skipped: nobody takes that for the same. */
const AHEAD_MS = 24 * 60 * 60_000;

export interface ClockSteps {
  /** Whether the clock is behind what it was when it was last asked; true at first, for what was before this process. */
  isSetBack(): boolean;
  /**
   * Plans anew what was planned while the clock was ahead, in the order of ids. Returns the last id that it has looked at;
   * null if there are no more. Call it in a transaction.
   */
  planAgain(after: string, most: number): string | null;
}

/**
 * A clock that was ahead leaves schedules behind that are due after the time that it showed. What ran meanwhile has run:
 * it is not run again when its time comes.
 */
export function createClockSteps(clock: Clock, queries: ScheduleQueries): ClockSteps {
  let latest = Number.POSITIVE_INFINITY;
  return {
    isSetBack() {
      const now = clock.now();
      const isBack = now < latest - STEP_MS;
      latest = now;
      return isBack;
    },
    planAgain(after, most) {
      const now = clock.now();
      const ahead = queries.aheadOf(now, after, most);
      for (const schedule of ahead) {
        const { scheduleId } = schedule;
        // The first time of an interval is one interval from now.
        const anchor = Math.min(schedule.anchor, now);
        queries.forgetAhead(scheduleId, now, now + AHEAD_MS);
        const lastSlot = queries.slots(scheduleId, now + AHEAD_MS, 1)[0]?.slotAt ?? null;
        queries.update(scheduleId, { anchor, lastSlot, nextAt: nextSlot(recurrenceOf({ ...schedule, anchor }), now) });
      }
      return ahead.length === most ? (ahead.at(-1)?.scheduleId ?? null) : null;
    },
  };
}
