import { AppError } from "../lib/app-error.ts";
import type { LimitsOfAccounts } from "./account-limits.ts";
import { createRates, type Rate } from "./rates.ts";

/** What a request counts as: GETs are reads, everything else is a write. */
export type RateName = "reads" | "writes";

export interface AccountRates {
  /** Lets one request in. Throws `rate_limited` beyond the account's rate. `cost` is in requests of the ordinary kind. */
  admit(accountId: string, name: RateName, cost?: number): void;
  /**
   * What a read turned out to cost beyond being let in, by the bytes of its answer and the milliseconds that it held the
   * thread which answers everybody. It is paid for by those that follow.
   */
  chargeRead(accountId: string, answerBytes: number, ms: number): void;
  /** The same of a write, by the bytes of its answer alone: its time is the disk's. */
  chargeWrite(accountId: string, answerBytes: number): void;
}

/** An ordinary answer; each further one of its size costs as much as one more request. */
const ORDINARY_ANSWER_BYTES = 4 * 1024;
/** All that an account may read in a second holds the thread for a quarter of it, whatever it reads. */
const THREAD_MS_A_SECOND = 250;
/** The rate by which that is shared out: a higher one is an operator's word that an account may have the whole thread. */
const ORDINARY_READS_A_SECOND = 5_000;
/** Beyond it the time was not the read's own: it waited for something. */
const LONGEST_READ_MS = 25;

const costOfSize = (answerBytes: number): number => Math.floor(answerBytes / ORDINARY_ANSWER_BYTES);

/** What a read cost beyond an ordinary one of an account with so many a second. */
export function costOfRead(answerBytes: number, ms: number, perSecond: number): number {
  const ordinaryMs = THREAD_MS_A_SECOND / Math.min(perSecond, ORDINARY_READS_A_SECOND);
  return Math.max(costOfSize(answerBytes), Math.ceil(Math.min(ms, LONGEST_READ_MS) / ordinaryMs) - 1);
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
    chargeRead(accountId, answerBytes, ms) {
      const { rate, who } = lookUp(accountId).reads;
      const cost = costOfRead(answerBytes, ms, rate.perSecond);
      if (cost > 0) rates.charge(who, rate, cost);
    },
    chargeWrite(accountId, answerBytes) {
      const cost = costOfSize(answerBytes);
      if (cost === 0) return;
      const { rate, who } = lookUp(accountId).writes;
      rates.charge(who, rate, cost);
    },
  };
}
