/** The source of time; tests pass their own. */
export interface Clock {
  /** Milliseconds since 1970; may jump. */
  now(): number;
  /** Nanoseconds of a monotonic clock; only differences mean anything. */
  monotonicNs(): bigint;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicNs: () => process.hrtime.bigint(),
};

/** Seconds of the monotonic clock, to the microsecond; only differences mean anything. */
export const secondsOf = (clock: Pick<Clock, "monotonicNs">): (() => number) => {
  return () => Number(clock.monotonicNs() / 1_000n) / 1e6;
};

/** Seconds from now until `ms`, a time in milliseconds since 1970; undefined without one. */
export const secondsUntil = (clock: Pick<Clock, "now">, ms: number | null | undefined): number | undefined =>
  ms === null || ms === undefined ? undefined : (ms - clock.now()) / 1000;

/** A time as the API shows it: ISO 8601 in UTC, with milliseconds. */
export const isoTime = (ms: number): string => new Date(ms).toISOString();
export const isoTimeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));
