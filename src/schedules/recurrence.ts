import { Cron } from "croner";
import { momentOf, wallTimeAt } from "../lib/wall-time.ts";

/** When a schedule is due: by cron on the clocks of its time zone, or at an interval from a moment on. */
export type Recurrence =
  | { cron: string; everySeconds: null; timeZone: string }
  | { cron: null; everySeconds: number; anchor: number };

/** Extensions such as `L` and `#` are left out: other programs do not know them. */
const FIELD = /^(?:[\d*,/-]|[a-z]{3})+$/i;

/**
 * A pattern of five fields: numbers, names of days and months, `*`, lists, ranges and steps. Null for one that is wrong,
 * or never due, such as 30 February.
 */
export function parseCron(pattern: string): Cron | null {
  const known = parsed.get(pattern);
  if (known !== undefined) return known;
  const cron = parse(pattern);
  if (parsed.size >= MAX_PARSED) parsed.clear();
  parsed.set(pattern, cron);
  return cron;
}

/** Many schedules have the same, and each is looked at several times. */
const parsed = new Map<string, Cron | null>();
const MAX_PARSED = 1_000;

function parse(pattern: string): Cron | null {
  const fields = pattern.trim().split(/\s+/);
  if (fields.length !== 5 || !fields.every((field) => FIELD.test(field))) return null;
  try {
    const cron = new Cron(fields.join(" "), { mode: "5-part", timezone: "UTC", paused: true });
    return canBeDue(fields) ? cron : null;
  } catch {
    return null;
  }
}

/** Days of the longest months; looking for one that never comes takes the library a tenth of a second. */
const MONTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function canBeDue([, , day = "*", month = "*", weekday = "*"]: string[]): boolean {
  // A pattern with a weekday is due on that too.
  if (weekday !== "*" || /^\*/.test(day)) return true;
  const firstDay = Math.min(...day.split(",").map((part) => Number.parseInt(part, 10)));
  return monthsOf(month).some((days) => firstDay <= days);
}

/** The lengths of the months that the field names. */
const monthsOf = (field: string): number[] =>
  MONTHS.filter((_, at) =>
    new Cron(`0 0 1 ${field} *`, { mode: "5-part", timezone: "UTC", paused: true }).match(
      new Date(Date.UTC(2024, at, 1)),
    ),
  );

/** The first time after `afterMs`; null if there is none. */
export function nextSlot(recurrence: Recurrence, afterMs: number): number | null {
  if (recurrence.cron === null) {
    const { anchor, everySeconds } = recurrence;
    const everyMs = everySeconds * 1000;
    return anchor + Math.max(1, Math.floor((afterMs - anchor) / everyMs) + 1) * everyMs;
  }
  const { timeZone } = recurrence;
  const cron = parseCron(recurrence.cron);
  let wall: Date | null | undefined = new Date(wallTimeAt(timeZone, afterMs));
  // Where the clocks have gone back, times that have been before come again.
  do {
    wall = cron?.nextRun(wall);
    if (!wall) return null;
  } while (momentOf(timeZone, wall.getTime()) <= afterMs);
  return momentOf(timeZone, wall.getTime());
}

/** Clocks go back by half an hour to two hours. */
const LONGEST_STEP_BACK_MS = 3 * 60 * 60_000;

/** A look ahead takes the library a fraction of a millisecond, a look back at a hundred times twenty of them. */
const FEW = 4;

/** The last `limit` times from `fromMs` to `toMs`, both included, oldest first. */
export function slotsBetween(recurrence: Recurrence, fromMs: number, toMs: number, limit: number): number[] {
  if (recurrence.cron === null) {
    const everyMs = recurrence.everySeconds * 1000;
    const last = recurrence.anchor + Math.floor((toMs - recurrence.anchor) / everyMs) * everyMs;
    return Array.from({ length: limit }, (_, back) => last - back * everyMs)
      .filter((slot) => slot >= fromMs && slot > recurrence.anchor)
      .reverse();
  }
  const few: number[] = [];
  let next = nextSlot(recurrence, fromMs - 1);
  for (; next !== null && next <= toMs && few.length < FEW; next = nextSlot(recurrence, next)) few.push(next);
  if (next === null || next > toMs) return few.slice(-limit);
  const { timeZone } = recurrence;
  const wallMs = wallTimeAt(timeZone, toMs);
  // Where the clocks have just gone back, they have shown later times than they show now.
  const latestMs = Math.max(wallMs, wallTimeAt(timeZone, toMs - LONGEST_STEP_BACK_MS) + LONGEST_STEP_BACK_MS);
  const most = limit + Math.ceil((latestMs - wallMs) / 60_000);
  const walls = parseCron(recurrence.cron)?.previousRuns(most, new Date(latestMs + 1)) ?? [];
  const slots = new Set(walls.map((wall) => momentOf(timeZone, wall.getTime())));
  return [...slots]
    .filter((slot) => slot >= fromMs && slot <= toMs)
    .sort((one, other) => one - other)
    .slice(-limit);
}
