import type { Ledger } from "../ledger/ledger.ts";
import type { AccountBalance } from "../ledger/schema.ts";
import { AppError } from "../lib/app-error.ts";
import { dayOf, monthOf } from "../lib/calendar.ts";
import type { Clock } from "../lib/clock.ts";
import { CURRENCY, formatMoney, type Micros } from "../lib/money.ts";
import { nsUntil } from "./accrual.ts";
import type { DayUsage, MeterQueries } from "./queries.ts";
import type { Readings } from "./readings.ts";
import { remainingOf } from "./runway.ts";
import { createUnread } from "./unread.ts";

/** The last day whose year ISO 8601 writes in four digits. */
const LAST_TIME = Date.UTC(9999, 11, 31);

/** Looked up for the account at each reading. */
export interface Terms {
  /** Null if the account has none. */
  monthlyLimit: Micros | null;
  suspended: boolean;
}

export interface FundsParts {
  rows: MeterQueries;
  readings: Readings;
  clock: Clock;
  ledger: Ledger;
  pricePerHour: Micros;
  termsOf(accountId: string): Terms;
  /** The latest time to settle the account, by the monotonic clock; null if it is not known to run out. */
  dueNs(accountId: string): bigint | null;
}

/** Live balances and costs: what is committed, plus what the next reading will charge. */
export interface Funds {
  /** The total cost of an instance. */
  costOf(instanceId: string): Micros;
  /** The account's balance. */
  balanceOf(accountId: string): Micros;
  /** What the account's next payment is to settle first, since an earlier one was reversed. */
  owedBy(accountId: string): Micros;
  /** The balance, and the usage in this calendar month (UTC). */
  standingOf(accountId: string): { balance: Micros; spentThisMonth: Micros };
  /** A running instance's usage that is not in its day's row yet; undefined if it is not running. */
  unread(instanceId: string): DayUsage | undefined;
  runningInstances(accountId: string): number;
  /** When the balance runs out at the present rate, in milliseconds since 1970; null if it never does. */
  emptyAt(accountId: string): number | null;
  /** Throws `forbidden` if this month's usage has reached the account's limit (docs/contract/api.md, Accounts). */
  requireUnderLimit(accountId: string): void;
}

/** The account with `spent` for this month. A new month sums the days' usage, so a wall clock that jumps loses none. */
export const inMonth = (month: string, account: AccountBalance, rows: Pick<MeterQueries, "costIn">): AccountBalance =>
  month === account.month ? account : { ...account, month, spent: rows.costIn(account.accountId, month) };

export function createFunds(parts: FundsParts): Funds {
  const { rows, readings, clock, ledger, pricePerHour, termsOf, dueNs } = parts;
  const unread = createUnread({ readings, clock, pricePerHour, remainingOf: leftAtEnd });
  const thisMonth = (account: AccountBalance) => inMonth(monthOf(clock.now()), account, rows);

  /** What the account can still be charged; null before the time at which it may have run out. */
  function leftAtEnd(accountId: string): Micros | null {
    if (pricePerHour === 0n || clock.monotonicNs() < (dueNs(accountId) ?? 0n)) return null;
    const account = thisMonth(ledger.accountBalance(accountId));
    return remainingOf(account.balance - account.unposted, termsOf(accountId).monthlyLimit, account.spent).amount;
  }

  function standingOf(accountId: string): { balance: Micros; spentThisMonth: Micros } {
    const account = ledger.accountBalance(accountId);
    const cost = unread.costOfAll(accountId);
    return { balance: balanceIn(account, cost), spentThisMonth: thisMonth(account).spent + cost };
  }

  const balanceOf = (accountId: string): Micros =>
    balanceIn(ledger.accountBalance(accountId), unread.costOfAll(accountId));

  return {
    costOf(instanceId) {
      const reading = readings.get(instanceId);
      return reading ? reading.accrued + unread.costOf(reading) : (rows.find(instanceId)?.accrued ?? 0n);
    },
    balanceOf,
    owedBy: (accountId) => ledger.accountBalance(accountId).owed,
    standingOf,
    unread(instanceId) {
      const reading = readings.get(instanceId);
      if (!reading) return undefined;
      const { accountId, sinceMs, sinceNs } = reading;
      const runningNs = clock.monotonicNs() - sinceNs;
      return { accountId, day: dayOf(sinceMs), instanceId, runningNs, cost: unread.costOf(reading) };
    },
    runningInstances: readings.countOf,
    emptyAt(accountId) {
      const remainders = readings.of(accountId).map((reading) => unread.accrualOf(reading).remainder);
      const ns = nsUntil(balanceOf(accountId), remainders, pricePerHour);
      const at = clock.now() + Number(ns ?? 0n) / 1e6;
      return ns === null || at > LAST_TIME ? null : at;
    },
    requireUnderLimit(accountId) {
      const limit = termsOf(accountId).monthlyLimit;
      if (limit === null || pricePerHour === 0n || standingOf(accountId).spentThisMonth < limit) return;
      throw new AppError(
        "forbidden",
        `this month's usage has reached the account's monthly limit of ${formatMoney(limit)} ${CURRENCY}: raise it with PATCH /v1/auth/me, or wait for the next month`,
      );
    },
  };
}

/** The posted balance less unposted and unread usage. */
function balanceIn({ balance, unposted }: AccountBalance, unreadCost: Micros): Micros {
  const left = balance - unposted - unreadCost;
  return left > 0n ? left : 0n;
}
