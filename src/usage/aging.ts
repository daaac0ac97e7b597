import type { Database } from "bun:sqlite";
import { dayOf } from "../lib/calendar.ts";
import { type Life, oldRows } from "../storage/retention.ts";

/** How what models took comes to the end of its life (docs/contract/operations.md, What is kept). */
export interface UsageAging {
  /** Calls that are part of the totals. */
  calls: Life["slice"];
  totals: Life["slice"];
  /** Notes that somebody was warned in a day or month. */
  warnings: Life["slice"];
}

export const createUsageAging = (sqlite: Database): UsageAging => ({
  calls: oldRows(sqlite, {
    table: "model_calls",
    key: "call_seq",
    start: -1,
    age: "created_at",
    // The newest number is never given again.
    only: "call_seq < (SELECT call_seq FROM model_usage_mark)",
  }),
  totals: oldDays(sqlite, "model_usage", "day", "account_id, kind, name, day"),
  warnings: oldDays(sqlite, "budget_warnings", "period", "scope, owner_id, name, period"),
});

/** Removes rows of days and months before the day of `before`, which an index has in order. */
function oldDays(sqlite: Database, table: string, column: string, key: string): Life["slice"] {
  const remove = `DELETE FROM ${table} WHERE (${key}) IN
    (SELECT ${key} FROM ${table} WHERE ${column} < ? ORDER BY ${column} LIMIT ?)`;
  return (before, _after, most) => {
    const { changes } = sqlite.query<never, [string, number]>(remove).run(dayOf(before), most);
    return { removed: changes, next: changes === most ? 0 : null };
  };
}
