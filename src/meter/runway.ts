import type { Micros } from "../lib/money.ts";

/** What an account may run out of. */
export type Shortage = "insufficient_balance" | "monthly_limit";

/** Why the meter stops an account's instances; it becomes their `statusReason`. */
export type StopReason = Shortage | "suspended";

/** Sent 24 hours, 1 hour and 5 minutes before an account's instances will stop (docs/contract/billing.md, Meter). */
export interface RunwayWarning {
  reason: Shortage;
  /** Time left at the present rate, in seconds. */
  secondsLeft: number;
  /** Milliseconds since 1970. */
  stopsAt: number;
}

const LEVELS_SECONDS = [300, 3_600, 86_400] as const;

/** The lowest level that the runway has reached; null if it is longer than all of them. */
export const warningLevelOf = (runwaySeconds: number): number | null =>
  LEVELS_SECONDS.find((level) => runwaySeconds <= level) ?? null;

/** What an account may still be charged, and what limits it. */
export function remainingOf(
  balance: Micros,
  limit: Micros | null,
  spent: Micros,
): { amount: Micros; reason: Shortage } {
  const underLimit = limit === null ? null : limit > spent ? limit - spent : 0n;
  if (underLimit !== null && underLimit < balance) return { amount: underLimit, reason: "monthly_limit" };
  return { amount: balance, reason: "insufficient_balance" };
}
