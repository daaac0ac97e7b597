import type { Clock } from "../../src/lib/clock.ts";

/** A clock that a test moves by hand. */
export interface HandClock extends Clock {
  /** Lets time pass: both clocks advance, also by fractions of a millisecond. */
  advance(ms: number): void;
  /** Sets the wall clock; the monotonic clock does not change. */
  step(ms: number): void;
}

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Shows the present until it is moved. */
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

/** Goes on from today's noon (UTC), so that no test sees a day end. */
export function clockFromNoon(): Clock {
  const noon = Math.floor(Date.now() / DAY) * DAY + DAY / 2;
  const began = performance.now();
  return { now: () => noon + Math.floor(performance.now() - began), monotonicNs: () => process.hrtime.bigint() };
}
