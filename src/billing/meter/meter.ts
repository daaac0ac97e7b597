import { AppError } from "../../lib/app-error.ts";
import type { Clock } from "../../lib/clock.ts";
import { CURRENCY, formatMoney, type Micros } from "../../lib/money.ts";
import type { Store } from "../../storage/store.ts";
import { dayOf, hourOf, monthOf, nextMonthAt } from "../calendar.ts";
import type { Ledger } from "../ledger.ts";
import type { Books } from "../table.ts";
import { accrue, nsUntil } from "./accrual.ts";
import { type DayUsage, meterQueries } from "./meter-table.ts";
import { createReadings, type Reading } from "./readings.ts";
import { leftOf, levelOf, type Means, type RunwayWarning, type StopReason } from "./runway.ts";
import { createUnread } from "./unread.ts";

/**
 * A reading is posted to the journal once it is worth a cent, at the end of its hour and when its instance stops: an
 * entry every ten seconds for each instance would be gigabytes of journal a day at a thousand of them.
 */
const WORTH_AN_ENTRY: Micros = 10_000n;

const SETTLE_AFTER_START_NS = 100_000_000n;

/** The last year that ISO 8601 writes in four digits. */
const LAST_TIME = Date.UTC(9999, 11, 31);

/** What is asked of an account at each reading. */
export interface Terms {
  /** Null for an account without one. */
  monthlyLimit: Micros | null;
  suspended: boolean;
}

export interface MeterParts {
  store: Store;
  clock: Clock;
  ledger: Ledger;
  pricePerHour: Micros;
  termsOf(accountId: string): Terms;
}

/** Told in the transaction that settles, so that what follows is committed with it. */
export interface MeterListener {
  /** The account may run nothing any more: its instances are to be stopped. */
  exhausted(accountId: string, reason: StopReason): void;
  runwayShort(accountId: string, warning: RunwayWarning): void;
  /** An account is to be settled earlier than was known, in so many nanoseconds; not of the transaction. */
  dueSoon?(inNs: bigint): void;
}

export interface Meter {
  /** Begins to count, in the transaction that makes the instance run. One that is counted already goes on. */
  start(instanceId: string, accountId: string): void;
  /** Counts what is left, posts it and ends, in the transaction that stops the instance. */
  stop(instanceId: string): void;
  /** The same, and forgets the instance; what it cost stays in the journal and in the days' usage. */
  remove(instanceId: string): void;
  /** Goes on counting, from now, the instances that ran when the appliance ended: its downtime is nobody's cost. */
  resume(running: readonly { instanceId: string; accountId: string }[]): void;
  /** Reads an account's meters, commits what they say and stops its instances where nothing is left, or nothing allowed. */
  settle(accountId: string): void;
  /**
   * The same, in the transaction that has changed the account's monthly limit: what was used before is charged whole,
   * or a limit that is lowered for a moment would be usage for nothing.
   */
  limitChanged(accountId: string): void;
  /** Those that have instances running. */
  accountIds(): string[];
  /** When the account is to be settled at the latest, by the monotonic clock; null where it is not known to run out. */
  dueNs(accountId: string): bigint | null;
  /** What an instance has cost over its life, up to this moment. */
  costOf(instanceId: string): Micros;
  /** What an account has, up to this moment. */
  balanceOf(accountId: string): Micros;
  /** The same, and its usage in this calendar month (UTC). */
  standingOf(accountId: string): { balance: Micros; spentThisMonth: Micros };
  /** What the days' usage does not have yet of a running instance; undefined for one that does not run. */
  unread(instanceId: string): DayUsage | undefined;
  runningInstances(accountId: string): number;
  /** When the balance ends as things are, milliseconds since 1970; null where nothing runs or it never does. */
  emptyAt(accountId: string): number | null;
  /** Throws `forbidden` when this month's usage has reached the account's limit (api.md section 2). */
  requireUnderLimit(accountId: string): void;
  listen(listener: MeterListener): void;
}

/** Counts what running instances cost, by the clock that never steps (billing.md, Meter). */
export function createMeter({ store, clock, ledger, pricePerHour, termsOf }: MeterParts): Meter {
  const rows = meterQueries(store.db);
  const readings = createReadings(store);
  const listeners: MeterListener[] = [];
  /** When each account that runs something is to be settled at the latest; only a hint, so no transaction minds it. */
  const dues = new Map<string, bigint>();

  const unread = createUnread({ readings, clock, pricePerHour, leftOf: leftAtEnd });

  /** The books turned to a month. Its days are summed, so a wall clock that steps there and back forgets no usage. */
  const booksIn = (month: string, books: Books): Books =>
    month === books.month ? books : { ...books, month, spent: rows.costIn(books.accountId, month) };

  /** What an account can still be charged; null before the moment at which it may have run out. */
  function leftAtEnd(accountId: string): Micros | null {
    if (pricePerHour === 0n || clock.monotonicNs() < (dues.get(accountId) ?? 0n)) return null;
    const books = booksIn(monthOf(clock.now()), ledger.booksOf(accountId));
    return leftOf(books.balance - books.unposted, termsOf(accountId).monthlyLimit, books.spent).amount;
  }

  /** Reads some meters of one account. Its balance, and the limit, bound what they may cost together. */
  function read(accountId: string, some: Reading[], limit: Micros | null, nowNs: bigint, ends: boolean): Books {
    const nowMs = clock.now();
    let books = ledger.booksOf(accountId);
    const posted: Reading[] = [];
    for (const reading of some) {
      const { instanceId, sinceNs, sinceMs } = reading;
      const day = dayOf(sinceMs);
      books = booksIn(monthOf(sinceMs), books);
      const left = leftOf(books.balance - books.unposted, limit, books.spent).amount;
      const counted = accrue(reading.remainder, nowNs - sinceNs, pricePerHour);
      // What runs on for the moment between the end of the balance and its stop is given away.
      const charged = counted.cost <= left ? counted : { cost: left, remainder: 0n };
      const unposted = reading.unposted + charged.cost;
      const posts = unposted > 0n && (ends || unposted >= WORTH_AN_ENTRY || hourOf(nowMs) !== reading.hour);
      const next: Reading = {
        ...reading,
        sinceNs: nowNs,
        sinceMs: nowMs,
        accrued: reading.accrued + charged.cost,
        remainder: charged.remainder,
        unposted: posts ? 0n : unposted,
        hour: posts || unposted === 0n ? hourOf(nowMs) : reading.hour,
      };
      if (posts) posted.push({ ...next, unposted, hour: reading.hour });
      books = {
        ...books,
        balance: posts ? books.balance - unposted : books.balance,
        unposted: books.unposted + next.unposted - reading.unposted,
        spent: books.spent + charged.cost,
      };
      rows.write(next);
      rows.addDay({ accountId, day, instanceId, runningNs: nowNs - sinceNs, cost: charged.cost });
      // The usage that is read between two readings is told by the row of its day: it must be there.
      if (dayOf(nowMs) !== day) rows.addDay({ accountId, day: dayOf(nowMs), instanceId, runningNs: 0n, cost: 0n });
      readings.put(next);
    }
    rows.setBooks(books);
    for (const reading of posted) postUsage(reading);
    return books;
  }

  function postUsage({ accountId, instanceId, unposted, hour }: Omit<Reading, "sinceNs" | "sinceMs">): void {
    ledger.post({ type: "usage", accountId, amount: -unposted, against: "revenue", usage: { instanceId, hour } });
  }

  function settle(accountId: string, limit: Micros | null): void {
    store.transaction(() => {
      dues.delete(accountId);
      const own = readings.of(accountId);
      if (own.length === 0) return;
      const nowNs = clock.monotonicNs();
      const books = booksIn(monthOf(clock.now()), read(accountId, own, limit, nowNs, false));
      const { monthlyLimit, suspended } = termsOf(accountId);
      const left = leftOf(books.balance - books.unposted, monthlyLimit, books.spent);
      if (suspended) stopAll(accountId, "suspended");
      else if (pricePerHour === 0n) return;
      else if (left.amount === 0n) stopAll(accountId, left.reason);
      else warn(books, monthlyLimit, nowNs);
    });
  }

  function stopAll(accountId: string, reason: StopReason): void {
    for (const { exhausted } of listeners) exhausted(accountId, reason);
  }

  /** Which of its means the account runs out of first, and in how many nanoseconds. */
  function runwayOf(
    { accountId, balance, unposted, spent }: Books,
    limit: Micros | null,
  ): { ns: bigint; reason: Means } {
    const remainders = readings.of(accountId).map(({ remainder }) => remainder);
    const ns = nsUntil(balance - unposted, remainders, pricePerHour) ?? 0n;
    const limitNs = limit === null ? null : nsUntil(limit - spent, remainders, pricePerHour);
    const monthNs = BigInt(nextMonthAt(clock.now()) - clock.now()) * 1_000_000n;
    const isFirst = limitNs !== null && limitNs < ns && limitNs < monthNs;
    return isFirst ? { ns: limitNs, reason: "monthly_limit" } : { ns, reason: "insufficient_balance" };
  }

  function warn(books: Books, limit: Micros | null, readNs: bigint): void {
    const { accountId } = books;
    const { ns, reason } = runwayOf(books, limit);
    dues.set(accountId, readNs + ns);
    const secondsLeft = Math.floor(Number(ns) / 1e9);
    const level = levelOf(secondsLeft);
    if (level === books.runwayWarned) return;
    rows.setBooks({ ...books, runwayWarned: level });
    if (level === null || (books.runwayWarned !== null && level > books.runwayWarned)) return;
    const warning = { reason, secondsLeft, stopsAt: clock.now() + secondsLeft * 1000 };
    for (const { runwayShort } of listeners) runwayShort(accountId, warning);
  }

  /** Not at once: a thousand instances may be started in a row, and each settling reads them all. */
  function settleSoon(accountId: string): void {
    const soonNs = clock.monotonicNs() + SETTLE_AFTER_START_NS;
    const dueNs = dues.get(accountId);
    if (dueNs !== undefined && dueNs <= soonNs) return;
    dues.set(accountId, soonNs);
    for (const { dueSoon } of listeners) dueSoon?.(SETTLE_AFTER_START_NS);
  }

  function begin(instanceId: string, accountId: string): void {
    const row = rows.find(instanceId);
    const sinceMs = clock.now();
    const { accrued = 0n, remainder = 0n } = row ?? {};
    const reading = { instanceId, accountId, sinceNs: clock.monotonicNs(), sinceMs, accrued, remainder, unposted: 0n };
    readings.put({ ...reading, hour: hourOf(sinceMs) });
    rows.write({ ...reading, hour: hourOf(sinceMs) });
    rows.addDay({ accountId, day: dayOf(sinceMs), instanceId, runningNs: 0n, cost: 0n });
    settleSoon(accountId);
  }

  const meter: Meter = {
    start(instanceId, accountId) {
      if (readings.get(instanceId)) return;
      store.transaction(() => {
        // A start after a stand-still is warned afresh.
        if (readings.countOf(accountId) === 0) rows.setBooks({ ...ledger.booksOf(accountId), runwayWarned: null });
        begin(instanceId, accountId);
      });
    },
    stop(instanceId) {
      const reading = readings.get(instanceId);
      if (!reading) return;
      store.transaction(() => {
        const { accountId } = reading;
        read(accountId, [reading], termsOf(accountId).monthlyLimit, clock.monotonicNs(), true);
        readings.remove(instanceId);
      });
    },
    remove(instanceId) {
      store.transaction(() => {
        meter.stop(instanceId);
        rows.remove(instanceId);
      });
    },
    resume(running) {
      store.transaction(() => {
        rows.notePrice(pricePerHour, clock.now());
        for (const row of rows.unposted()) {
          const books = ledger.booksOf(row.accountId);
          rows.write({ ...row, sinceNs: 0n, sinceMs: 0, unposted: 0n });
          rows.setBooks({ ...books, unposted: books.unposted - row.unposted });
          postUsage(row);
        }
        for (const { instanceId, accountId } of running) begin(instanceId, accountId);
      });
    },
    settle: (accountId) => settle(accountId, termsOf(accountId).monthlyLimit),
    limitChanged: (accountId) => settle(accountId, null),
    accountIds: readings.accountIds,
    dueNs: (accountId) => dues.get(accountId) ?? null,
    costOf(instanceId) {
      const reading = readings.get(instanceId);
      return reading ? reading.accrued + unread.costOf(reading) : (rows.find(instanceId)?.accrued ?? 0n);
    },
    balanceOf: (accountId) => balanceIn(ledger.booksOf(accountId), unread.costOfAll(accountId)),
    standingOf(accountId) {
      const books = ledger.booksOf(accountId);
      const cost = unread.costOfAll(accountId);
      const { spent } = booksIn(monthOf(clock.now()), books);
      return { balance: balanceIn(books, cost), spentThisMonth: spent + cost };
    },
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
      const ns = nsUntil(meter.balanceOf(accountId), remainders, pricePerHour);
      const at = clock.now() + Number(ns ?? 0n) / 1e6;
      return ns === null || at > LAST_TIME ? null : at;
    },
    requireUnderLimit(accountId) {
      const limit = termsOf(accountId).monthlyLimit;
      if (limit === null || pricePerHour === 0n || meter.standingOf(accountId).spentThisMonth < limit) return;
      throw new AppError(
        "forbidden",
        `this month's usage has reached the account's monthly limit of ${formatMoney(limit)} ${CURRENCY}: raise it with PATCH /v1/auth/me, or wait for the next month`,
      );
    },
    listen: (listener) => void listeners.push(listener),
  };
  return meter;
}

/** Of the books, less what is unread. */
function balanceIn({ balance, unposted }: Books, unreadCost: Micros): Micros {
  const left = balance - unposted - unreadCost;
  return left > 0n ? left : 0n;
}
