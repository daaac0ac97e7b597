import { AppError } from "../lib/app-error.ts";
import type { LimitsOfAccounts } from "./account-limits.ts";
import { createRates, type Rate } from "./rates.ts";

/** What a request counts as: GETs are reads, everything else is a write. */
export type RateName = "reads" | "writes";

export interface AccountRates {
  /** Lets one request in. Throws `rate_limited` beyond the account's rate. `cost` is in requests of the ordinary kind. */
  admit(accountId: string, name: RateName, cost?: number): void;
  /** What the request turned out to cost beyond being let in: it is paid by those that follow. */
  charge(accountId: string, name: RateName, cost: number): void;
}

/** Seconds for which a burst may be saved up (api.md section 1, Limits). */
const BURST_SECONDS: Record<RateName, number> = { reads: 1, writes: 5 };
/** An operator's change of a limit is seen after this. */
const REMEMBERED_SECONDS = 1;
const MAX_REMEMBERED = 10_000;

type Known = Record<RateName, { rate: Rate; who: string }> & { until: number };

/** The rates of accounts. `now` gives seconds of a clock that never steps. */
export function createAccountRates(limits: LimitsOfAccounts, now: () => number): AccountRates {
  const rates = createRates(now);
  const known = new Map<string, Known>();

  function lookUp(accountId: string): Known {
    const found = known.get(accountId);
    const at = now();
    if (found && found.until > at) return found;
    const { reads, writes } = limits.of(accountId);
    const rateOf = (name: RateName, perSecond: number) => ({
      rate: { perSecond, burst: perSecond * BURST_SECONDS[name] },
      who: `${name} ${accountId}`,
    });
    const fresh = { reads: rateOf("reads", reads), writes: rateOf("writes", writes), until: at + REMEMBERED_SECONDS };
    // Only remembered to spare the look-up: forgetting all of them costs one each.
    if (known.size >= MAX_REMEMBERED) known.clear();
    known.set(accountId, fresh);
    return fresh;
  }

  return {
    admit(accountId, name, cost = 1) {
      const { rate, who } = lookUp(accountId)[name];
      const wait = rates.take(who, rate, cost);
      if (wait === 0) return;
      throw new AppError(
        "rate_limited",
        `more than ${rate.perSecond} ${name} a second by this account; try again later`,
        {
          retryAfterSeconds: wait,
        },
      );
    },
    charge(accountId, name, cost) {
      const { rate, who } = lookUp(accountId)[name];
      rates.charge(who, rate, cost);
    },
  };
}
