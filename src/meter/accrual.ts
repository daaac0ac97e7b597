import type { Micros } from "../lib/money.ts";

/** One micro-USDC, in the unit that accrual counts in: nanoseconds × micro-USDC an hour. */
const MICRO = 3_600_000_000_000n;

export interface Accrual {
  cost: Micros;
  /** What is left of less than one micro-USDC, to be carried into the next reading. */
  remainder: bigint;
}

/** What `elapsedNs` of running cost. The remainder carried, any partition of the time costs the same (billing.md). */
export function accrue(remainder: bigint, elapsedNs: bigint, pricePerHour: Micros): Accrual {
  const total = remainder + elapsedNs * pricePerHour;
  return { cost: total / MICRO, remainder: total % MICRO };
}

/**
 * The time in nanoseconds by which the instances with these remainders have cost `amount` together, should they all go on
 * running; null where they never do. Each is rounded down for itself, so it may be reached earlier, by less than one
 * micro-USDC's time: who waits for this moment finds it reached, and need not look again and again.
 */
export function nsUntil(amount: Micros, remainders: readonly bigint[], pricePerHour: Micros): bigint | null {
  const perNs = pricePerHour * BigInt(remainders.length);
  if (perNs === 0n) return null;
  const roundedOff = BigInt(remainders.length - 1) * (MICRO - 1n);
  const missing = amount * MICRO + roundedOff - remainders.reduce((sum, remainder) => sum + remainder, 0n);
  return missing <= 0n ? 0n : (missing + perNs - 1n) / perNs;
}
