import type { Micros } from "../lib/money.ts";

/** One micro-USDC in the unit of accrual: nanoseconds × micro-USDC per hour. */
const MICRO = 3_600_000_000_000n;

export interface Accrual {
  cost: Micros;
  /** Less than one micro-USDC, carried into the next reading. */
  remainder: bigint;
}

/**
 * The cost of running for `elapsedNs`. Since the remainder is carried, any partition of the time costs the same
 * (docs/contract/billing.md, Meter).
 */
export function accrue(remainder: bigint, elapsedNs: bigint, pricePerHour: Micros): Accrual {
  const total = remainder + elapsedNs * pricePerHour;
  return { cost: total / MICRO, remainder: total % MICRO };
}

/**
 * How many nanoseconds the instances with these remainders must keep running to cost `amount` together; null if they
 * never will. Costs are rounded down per instance, so the true moment may be earlier by less than one micro-USDC's
 * time, but never later: whoever waits until then need not check again.
 */
export function nsUntil(amount: Micros, remainders: readonly bigint[], pricePerHour: Micros): bigint | null {
  const perNs = pricePerHour * BigInt(remainders.length);
  if (perNs === 0n) return null;
  const roundedOff = BigInt(remainders.length - 1) * (MICRO - 1n);
  const missing = amount * MICRO + roundedOff - remainders.reduce((sum, remainder) => sum + remainder, 0n);
  return missing <= 0n ? 0n : (missing + perNs - 1n) / perNs;
}
