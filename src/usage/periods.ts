import { DAY_MS, dayOf } from "../lib/calendar.ts";
import type { Period } from "./queries.ts";

/** For what is limited as a whole. */
export const ALWAYS: Period = { first: "", last: "\u{10ffff}", from: 0, until: Number.POSITIVE_INFINITY };

/** The day (UTC) of a moment. */
export function dayAt(ms: number): Period {
  const from = ms - (ms % DAY_MS);
  const day = dayOf(from);
  return { first: day, last: day, from, until: from + DAY_MS };
}

/** The calendar month (UTC) of a moment. */
export function monthAt(ms: number): Period {
  const date = new Date(ms);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const [from, until] = [Date.UTC(year, month), Date.UTC(year, month + 1)];
  return { first: dayOf(from), last: dayOf(until - 1), from, until };
}
