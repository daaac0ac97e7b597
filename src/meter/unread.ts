import type { Clock } from "../lib/clock.ts";
import { lesser, type Micros } from "../lib/money.ts";
import { type Accrual, accrue } from "./accrual.ts";
import type { Reading, Readings } from "./readings.ts";

export interface UnreadParts {
  readings: Pick<Readings, "of">;
  clock: Pick<Clock, "monotonicNs">;
  pricePerHour: Micros;
  /** The most that an account can be charged; null if it certainly covers the unread usage. */
  remainingOf(accountId: string): Micros | null;
}

/** What the next reading will charge, so that shown amounts never jump back when it does. */
export function createUnread({ readings, clock, pricePerHour, remainingOf }: UnreadParts) {
  /** The cost of an instance since its last reading, whether or not the account can pay it. */
  const accrualOf = ({ remainder, sinceNs }: Reading): Accrual =>
    accrue(remainder, clock.monotonicNs() - sinceNs, pricePerHour);

  return {
    accrualOf,
    /** If the account cannot pay for all of its instances, those that are read first are charged first. */
    costOf(reading: Reading): Micros {
      let left = remainingOf(reading.accountId);
      if (left === null) return accrualOf(reading).cost;
      for (const own of readings.of(reading.accountId)) {
        const cost = lesser(accrualOf(own).cost, left);
        if (own.instanceId === reading.instanceId) return cost;
        left -= cost;
      }
      return 0n;
    },
    costOfAll(accountId: string): Micros {
      const cost = readings.of(accountId).reduce((sum, reading) => sum + accrualOf(reading).cost, 0n);
      const left = remainingOf(accountId);
      return left === null ? cost : lesser(cost, left);
    },
  };
}
