import { AppError } from "../lib/app-error.ts";
import { type Clock, secondsOf } from "../lib/clock.ts";
import { createFixedWindows } from "../limits/fixed-windows.ts";

/** Who comes again when he is told to looks thirty times a minute for each of his payments. */
const MOST = 300;
const MINUTE = 60;

/**
 * Bounds how often a minute nodes are asked on behalf of an account, whatever it presents and however often. `admit`
 * throws `rate_limited` for one look too many.
 */
export function createLookUps(clock: Clock): { admit(accountId: string): void } {
  const looks = createFixedWindows(secondsOf(clock), { seconds: MINUTE, max: MOST });
  return {
    admit(accountId) {
      const wait = looks.count(accountId);
      if (wait === 0) return;
      throw new AppError("rate_limited", `transactions were looked for more than ${MOST} times within a minute`, {
        retryAfterSeconds: wait,
      });
    },
  };
}
