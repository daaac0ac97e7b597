import { DAY_MS, dayOf } from "../../lib/calendar.ts";
import type { Schedule } from "./records.ts";

const dayIn = (timeZone: string, ms: number): string =>
  new Intl.DateTimeFormat("en-CA", { timeZone, dateStyle: "short" }).format(ms);

/** This browser's own time zone. */
export const ownZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The zone a schedule's times are told in: its own, or this browser's where its own decides nothing. */
export const toldIn = ({ cron, activeHours, timeZone }: Pick<Schedule, "cron" | "activeHours" | "timeZone">): string =>
  cron === null && activeHours === null ? ownZone() : timeZone;

/** A moment on the clocks of a zone: `today at 08:00`, `tomorrow at 08:00`, `Mon, 23 Nov at 08:00`. */
export function whenIn(timeZone: string, ms: number, nowMs = Date.now()): string {
  const clock = new Intl.DateTimeFormat("en-GB", { timeZone, hour: "2-digit", minute: "2-digit" }).format(ms);
  const day = dayIn(timeZone, ms);
  const today = dayIn(timeZone, nowMs);
  if (day === today) return `today at ${clock}`;
  // By the calendar: a day may have 23 or 25 hours.
  if (day === dayOf(Date.parse(today) + DAY_MS)) return `tomorrow at ${clock}`;
  if (day === dayOf(Date.parse(today) - DAY_MS)) return `yesterday at ${clock}`;
  const form: Intl.DateTimeFormatOptions = { timeZone, weekday: "short", day: "numeric", month: "short" };
  if (Math.abs(ms - nowMs) > 300 * DAY_MS) form.year = "numeric";
  return `${new Intl.DateTimeFormat("en-GB", form).format(ms)} at ${clock}`;
}

const DAILY = /^(\d{1,2}) (\d{1,2}) \* \* (\*|1-5)$/;

/** The hour and days of a pattern that says no more; null for others. */
export function simpleCron(cron: string): { time: string; isDaily: boolean } | null {
  const [, minute, hour, days] = DAILY.exec(cron) ?? [];
  if (minute === undefined || hour === undefined) return null;
  return { time: `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`, isDaily: days === "*" };
}

/** `every day at 08:00`; a pattern that no words fit, as it is. */
export function cronInWords(cron: string): string {
  if (cron === "0 * * * *") return "every hour";
  const simple = simpleCron(cron);
  if (simple === null) return cron;
  return `${simple.isDaily ? "every day" : "Monday to Friday"} at ${simple.time}`;
}
