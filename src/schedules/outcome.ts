import type { EventLog } from "../messages/events/event-log.ts";
import type { Messages } from "../messages/messages.ts";
import type { EndedRun } from "../messages/runs/ending.ts";
import type { ScheduleQueries } from "./queries.ts";
import type { Schedule, Slot } from "./schema.ts";

/** Failures in a row of which the owner is told, and after which the schedule is switched off. */
const TELL_AFTER = 2;
const OFF_AFTER = 5;

export interface OutcomeParts {
  queries: ScheduleQueries;
  messages: Pick<Messages, "announce">;
  events: Pick<EventLog, "append">;
  /** Tells the owner by mail. Called in the transaction. */
  tell(schedule: Schedule, what: "failing" | "disabled", reason: string): void;
}

export interface Outcomes {
  /** A schedule's run has ended. Call it in the transaction of its end. */
  ended(ended: EndedRun): void;
  /** Counts a time whose run could not be started. Call it in a transaction. */
  failed(slot: Slot): void;
}

/** What follows from how a schedule's runs end (docs/contract/api.md, Schedules). */
export function createOutcomes({ queries, messages, events, tell }: OutcomeParts): Outcomes {
  function fail(scheduleId: string, reason: string): void {
    const schedule = queries.find(scheduleId);
    if (!schedule) return;
    const failuresInARow = schedule.failuresInARow + 1;
    const isOff = failuresInARow >= OFF_AFTER && schedule.enabled;
    queries.update(scheduleId, { failuresInARow, ...(isOff && { enabled: false, nextAt: null }) });
    if (!isOff && failuresInARow !== TELL_AFTER) return;
    const what = isOff ? "disabled" : "failing";
    events.append(schedule.agentId, [
      { type: `schedule.${what}`, scheduleId, name: schedule.name, failuresInARow, reason },
    ]);
    tell(schedule, what, reason);
  }

  return {
    failed: ({ scheduleId, reason }) => fail(scheduleId, reason ?? ""),
    ended({ run }) {
      const { originType, originId: scheduleId, status } = run;
      if ((originType !== "schedule" && originType !== "heartbeat") || scheduleId === null) return;
      const slot = queries.slotOfRun(run.runId);
      if (status === "failed") {
        const reason = run.errorMessage ?? "the run failed";
        // A run by hand is its person's concern.
        if (!slot) return;
        // A limit that ends by itself switches nothing off.
        const isOverBudget = run.errorCode === "budget_exceeded" && run.retryAt !== null;
        queries.setSlot(slot, { status: isOverBudget ? "skipped" : "failed", reason });
        if (!isOverBudget) fail(scheduleId, reason);
        return;
      }
      if (status === "cancelled") {
        if (slot) queries.setSlot(slot, { status: "ran", reason: "the run was cancelled" });
        return;
      }
      if (slot) queries.update(scheduleId, { failuresInARow: 0 });
      if (queries.find(scheduleId)?.announce) messages.announce(run);
    },
  };
}
