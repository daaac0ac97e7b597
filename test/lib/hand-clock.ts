import type { Clock } from "../../src/lib/clock.ts";

/** A clock that a test moves by hand. */
export interface HandClock extends Clock {
  advance(ms: number): void;
}

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Stands at the present until it is moved; its monotonic half moves along. */
export function handClock(startMs = Date.now()): HandClock {
  let now = startMs;
  return {
    now: () => now,
    monotonicNs: () => BigInt(now - startMs) * 1_000_000n,
    advance(ms) {
      now += ms;
    },
  };
}
