import type { Clock } from "../lib/clock.ts";
import type { Micros } from "../lib/money.ts";
import { type Accrual, accrue } from "./accrual.ts";
import type { Reading, Readings } from "./readings.ts";

export interface UnreadParts {
  readings: Pick<Readings, "of">;
  clock: Pick<Clock, "monotonicNs">;
  pricePerHour: Micros;
  /** What an account can be charged at most; null where it surely has more than is unread. */
  leftOf(accountId: string): Micros | null;
}

const least = (one: Micros, other: Micros): Micros => (one < other ? one : other);

/** What the meter's next reading will charge, so that nothing that is shown falls back when it does. */
export function createUnread({ readings, clock, pricePerHour, leftOf }: UnreadParts) {
  /** What an instance's time since its last reading costs, whether there is so much left or not. */
  const accrualOf = ({ remainder, sinceNs }: Reading): Accrual =>
    accrue(remainder, clock.monotonicNs() - sinceNs, pricePerHour);

  return {
    accrualOf,
    /** Where less is left than its account's instances cost, those that are read first have it. */
    costOf(reading: Reading): Micros {
      let left = leftOf(reading.accountId);
      if (left === null) return accrualOf(reading).cost;
      for (const own of readings.of(reading.accountId)) {
        const cost = least(accrualOf(own).cost, left);
        if (own.instanceId === reading.instanceId) return cost;
        left -= cost;
      }
      return 0n;
    },
    costOfAll(accountId: string): Micros {
      const cost = readings.of(accountId).reduce((sum, reading) => sum + accrualOf(reading).cost, 0n);
      const left = leftOf(accountId);
      return left === null ? cost : least(cost, left);
    },
  };
}
