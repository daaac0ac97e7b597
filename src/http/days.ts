import { z } from "zod";
import { AppError } from "../lib/app-error.ts";
import { DAY_MS, dayOf } from "../lib/calendar.ts";

const DEFAULT_DAYS = 30;

/** A day in a query, UTC: `2026-11-21`. */
export const day = z.iso.date({ error: "a day such as 2026-11-21" }).optional();

/** The requested days, both inclusive; by default the last 30. Throws `invalid_request` for an end before the beginning. */
export function daysOf(from: string | undefined, to: string | undefined, nowMs: number): { from: string; to: string } {
  const today = dayOf(nowMs);
  const last = to ?? (from !== undefined && from > today ? from : today);
  const first = from ?? dayOf(Date.parse(last) - (DEFAULT_DAYS - 1) * DAY_MS);
  if (first > last) throw new AppError("invalid_request", "to: expected a day that is not before from");
  return { from: first, to: last };
}
