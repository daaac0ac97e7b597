import type { Micros } from "../lib/money.ts";

/** What an account may run out of. */
export type Means = "insufficient_balance" | "monthly_limit";

/** Why the meter stops an account's instances; it becomes their `statusReason`. */
export type StopReason = Means | "suspended";

/** Told 24 hours, 1 hour and 5 minutes before an account's instances will stop (billing.md, Meter). */
export interface RunwayWarning {
  reason: Means;
  /** How long it lasts as things are, in seconds. */
  secondsLeft: number;
  /** Milliseconds since 1970. */
  stopsAt: number;
}

const LEVELS_SECONDS = [300, 3_600, 86_400] as const;

/** The tightest of the levels that a runway has come under; null while it is longer than all of them. */
export const levelOf = (runwaySeconds: number): number | null =>
  LEVELS_SECONDS.find((level) => runwaySeconds <= level) ?? null;

/** What an account may still cost, and what will have ended it. */
export function leftOf(balance: Micros, limit: Micros | null, spent: Micros): { amount: Micros; reason: Means } {
  const underLimit = limit === null ? null : limit > spent ? limit - spent : 0n;
  if (underLimit !== null && underLimit < balance) return { amount: underLimit, reason: "monthly_limit" };
  return { amount: balance, reason: "insufficient_balance" };
}
