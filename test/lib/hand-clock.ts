import type { Clock } from "../../src/lib/clock.ts";

/** A clock that a test moves by hand. */
export interface HandClock extends Clock {
  /** Time goes by: both halves move, by fractions of a millisecond too. */
  advance(ms: number): void;
  /** Somebody sets the wall clock: the monotonic half stands. */
  step(ms: number): void;
}

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Stands at the present until it is moved. */
export function handClock(startMs = Date.now()): HandClock {
  let now = startMs;
  let monotonicNs = 0n;
  return {
    now: () => Math.floor(now),
    monotonicNs: () => monotonicNs,
    advance(ms) {
      now += ms;
      monotonicNs += BigInt(Math.round(ms * 1_000_000));
    },
    step(ms) {
      now += ms;
    },
  };
}
