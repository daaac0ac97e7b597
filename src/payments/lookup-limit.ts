import { AppError } from "../lib/app-error.ts";
import { type Clock, secondsOf } from "../lib/clock.ts";
import { createFixedWindows } from "../limits/fixed-windows.ts";

/** A client that retries as told looks up each of its payments thirty times a minute. */
const MAX_PER_MINUTE = 300;
const MINUTE = 60;

/**
 * Limits how often per minute nodes are called on behalf of an account. `admit` throws `rate_limited` beyond that.
 */
export function createLookupLimit(clock: Clock): { admit(accountId: string): void } {
  const lookups = createFixedWindows(secondsOf(clock), { seconds: MINUTE, max: MAX_PER_MINUTE });
  return {
    admit(accountId) {
      const wait = lookups.count(accountId);
      if (wait === 0) return;
      throw new AppError(
        "rate_limited",
        `transactions were looked up more than ${MAX_PER_MINUTE} times within a minute`,
        {
          retryAfterSeconds: wait,
        },
      );
    },
  };
}
