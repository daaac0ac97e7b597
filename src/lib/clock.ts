/** Time as the rules see it; a test hands in its own. */
export interface Clock {
  /** Milliseconds since 1970, may step. */
  now(): number;
  /** Nanoseconds of a clock that never steps; only differences mean anything. */
  monotonicNs(): bigint;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicNs: () => process.hrtime.bigint(),
};

/** Seconds of a clock that never steps, to the microsecond; only differences mean anything. */
export const secondsOf = (clock: Pick<Clock, "monotonicNs">): (() => number) => {
  return () => Number(clock.monotonicNs() / 1_000n) / 1e6;
};

/** The API's form of a time: ISO 8601, UTC, milliseconds. */
export const isoTime = (ms: number): string => new Date(ms).toISOString();
export const isoTimeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));
