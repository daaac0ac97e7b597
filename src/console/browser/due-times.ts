import { nextSlot, parseCron, type Recurrence } from "../../schedules/recurrence.ts";
import type { Schedule } from "./records.ts";

export { isTimeZone } from "../../lib/wall-time.ts";

/** Loaded when somebody looks at schedules: what reads patterns of cron is large. */
export type DueTimes = typeof import("./due-times.ts");

export const isPattern = (cron: string): boolean => parseCron(cron) !== null;

/** The first `count` moments at which it is due from now on, in ms; an interval begins now. */
export function nextTimes(
  { cron, everySeconds, timeZone }: Pick<Schedule, "cron" | "everySeconds" | "timeZone">,
  count: number,
): number[] {
  const now = Date.now();
  const recurrence: Recurrence =
    cron === null ? { cron, everySeconds: everySeconds ?? 60, anchor: now } : { cron, everySeconds: null, timeZone };
  const times: number[] = [];
  for (let at = nextSlot(recurrence, now); at !== null && times.length < count; at = nextSlot(recurrence, at)) {
    times.push(at);
  }
  return times;
}
