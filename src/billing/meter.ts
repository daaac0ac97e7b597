import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { CURRENCY, formatMoney, type Micros } from "../lib/money.ts";
import type { Store } from "../storage/store.ts";
import { type Accrual, accrue, nsUntil } from "./accrual.ts";
import { dayOf, hourOf, monthOf } from "./calendar.ts";
import type { Ledger } from "./ledger.ts";
import { type DayUsage, meterQueries } from "./meter-table.ts";
import { createReadings, type Reading } from "./readings.ts";
import { leftOf, levelOf, type RunwayWarning, type StopReason } from "./runway.ts";
import type { Books } from "./table.ts";

/**
 * A reading is posted to the journal once it is worth a cent, at the end of its hour and when its instance stops: an
 * entry every ten seconds for each instance would be gigabytes of journal a day at a thousand of them.
 */
const WORTH_AN_ENTRY: Micros = 10_000n;

const SETTLE_AFTER_START_NS = 100_000_000n;

export interface MeterParts {
  store: Store;
  clock: Clock;
  ledger: Ledger;
  pricePerHour: Micros;
  /** Null for an account without one. */
  monthlyLimitOf(accountId: string): Micros | null;
}

/** Told in the transaction that settles, so that what follows is committed with it. */
export interface MeterListener {
  /** The account may run nothing any more: its instances are to be stopped. */
  exhausted(accountId: string, reason: StopReason): void;
  runwayShort(accountId: string, warning: RunwayWarning): void;
}

export interface Meter {
  /** Begins to count, in the transaction that makes the instance run. */
  start(instanceId: string, accountId: string): void;
  /** Counts what is left, posts it and ends, in the transaction that stops the instance. */
  stop(instanceId: string): void;
  /** The same, and forgets the instance; what it cost stays in the journal and in the days' usage. */
  remove(instanceId: string): void;
  /** Goes on counting, from now, the instances that ran when the appliance ended: its downtime is nobody's cost. */
  resume(running: readonly { instanceId: string; accountId: string }[]): void;
  /** Reads an account's meters, commits what they say and stops its instances where nothing is left. */
  settle(accountId: string): void;
  /** Those that have instances running. */
  accountIds(): string[];
  /** When the account is to be settled at the latest, by the monotonic clock; null where it is not known to run out. */
  dueNs(accountId: string): bigint | null;
  /** What an instance has cost over its life, up to this moment. */
  costOf(instanceId: string): Micros;
  /** What an account has, up to this moment. */
  balanceOf(accountId: string): Micros;
  /** Its usage in this calendar month (UTC), up to this moment. */
  spentThisMonth(accountId: string): Micros;
  /** What the days' usage does not have yet of a running instance; undefined for one that does not run. */
  unread(instanceId: string): DayUsage | undefined;
  runningInstances(accountId: string): number;
  /** When the balance ends as things are, milliseconds since 1970; null where nothing runs or nothing is charged. */
  emptyAt(accountId: string): number | null;
  /** Throws `forbidden` when this month's usage has reached the account's limit (api.md section 2). */
  requireUnderLimit(accountId: string): void;
  listen(listener: MeterListener): void;
}

/** Counts what running instances cost, by the clock that never steps (billing.md, Meter). */
export function createMeter({ store, clock, ledger, pricePerHour, monthlyLimitOf }: MeterParts): Meter {
  const rows = meterQueries(store.db);
  const readings = createReadings(store);
  const listeners: MeterListener[] = [];
  /** When each account that runs something is to be settled at the latest; only a hint, so no transaction minds it. */
  const dues = new Map<string, bigint>();

  const unreadOf = (reading: Reading): Accrual =>
    accrue(reading.remainder, clock.monotonicNs() - reading.sinceNs, pricePerHour);
  const unreadCostOf = (accountId: string): Micros =>
    readings.of(accountId).reduce((sum, reading) => sum + unreadOf(reading).cost, 0n);

  /** The books with the month that is metered: it never goes back, or a step of the wall clock would forget a limit. */
  function booksIn(month: string, accountId: string): Books {
    const books = ledger.booksOf(accountId);
    return month > books.month ? { ...books, month, spent: 0n } : books;
  }

  /** Reads some meters of one account. What it has left bounds what they may cost together. */
  function read(accountId: string, some: readonly Reading[], ends: boolean): Books {
    const nowNs = clock.monotonicNs();
    const nowMs = clock.now();
    const month = monthOf(Math.min(nowMs, ...some.map(({ sinceMs }) => sinceMs)));
    let books = booksIn(month, accountId);
    let left = leftOf(books.balance - books.unposted, monthlyLimitOf(accountId), books.spent).amount;
    const posted: Reading[] = [];
    for (const reading of some) {
      const { instanceId, sinceNs, sinceMs } = reading;
      const counted = accrue(reading.remainder, nowNs - sinceNs, pricePerHour);
      // What runs on for the moment between the end of the balance and its stop is given away.
      const charged = counted.cost <= left ? counted : { cost: left, remainder: 0n };
      left -= charged.cost;
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
        unposted: books.unposted + next.unposted - reading.unposted,
        spent: books.spent + charged.cost,
      };
      rows.write(next);
      rows.addDay({ accountId, day: dayOf(sinceMs), instanceId, runningNs: nowNs - sinceNs, cost: charged.cost });
      readings.put(next);
    }
    rows.setBooks(books);
    for (const reading of posted) postUsage(reading);
    return ledger.booksOf(accountId);
  }

  function postUsage({
    accountId,
    instanceId,
    unposted,
    hour,
  }: Pick<Reading, "accountId" | "instanceId" | "unposted" | "hour">): void {
    ledger.post({ type: "usage", accountId, amount: -unposted, against: "revenue", usage: { instanceId, hour } });
  }

  function settle(accountId: string): void {
    store.transaction(() => {
      dues.delete(accountId);
      const own = readings.of(accountId);
      if (own.length === 0) return;
      const books = read(accountId, own, false);
      if (pricePerHour === 0n) return;
      const left = leftOf(books.balance - books.unposted, monthlyLimitOf(accountId), books.spent);
      if (left.amount === 0n) {
        for (const { exhausted } of listeners) exhausted(accountId, left.reason);
      } else warn(accountId, books, left);
    });
  }

  function warn(accountId: string, books: Books, left: { amount: Micros; reason: StopReason }): void {
    const ns = nsUntil(
      left.amount,
      readings.of(accountId).map(({ remainder }) => remainder),
      pricePerHour,
    );
    if (ns === null) return;
    dues.set(accountId, clock.monotonicNs() + ns);
    const secondsLeft = Math.floor(Number(ns) / 1e9);
    const level = levelOf(secondsLeft);
    if (level === books.runwayWarned) return;
    rows.setBooks({ ...books, runwayWarned: level });
    if (level === null || (books.runwayWarned !== null && level > books.runwayWarned)) return;
    const warning = { reason: left.reason, secondsLeft, stopsAt: clock.now() + secondsLeft * 1000 };
    for (const { runwayShort } of listeners) runwayShort(accountId, warning);
  }

  function begin(instanceId: string, accountId: string): void {
    const row = rows.find(instanceId);
    const sinceMs = clock.now();
    const { accrued = 0n, remainder = 0n } = row ?? {};
    const reading = { instanceId, accountId, sinceNs: clock.monotonicNs(), sinceMs, accrued, remainder, unposted: 0n };
    readings.put({ ...reading, hour: hourOf(sinceMs) });
    rows.write({ ...reading, hour: hourOf(sinceMs) });
    rows.addDay({ accountId, day: dayOf(sinceMs), instanceId, runningNs: 0n, cost: 0n });
  }

  const meter: Meter = {
    start(instanceId, accountId) {
      store.transaction(() => {
        // A start after a stand-still is warned afresh.
        if (readings.of(accountId).length === 0) rows.setBooks({ ...ledger.booksOf(accountId), runwayWarned: null });
        begin(instanceId, accountId);
        // Not at once: a thousand instances may be made in a row, and each settling reads them all.
        dues.set(accountId, clock.monotonicNs() + SETTLE_AFTER_START_NS);
      });
    },
    stop(instanceId) {
      const reading = readings.get(instanceId);
      if (!reading) return;
      store.transaction(() => {
        read(reading.accountId, [reading], true);
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
    settle,
    accountIds: readings.accountIds,
    dueNs: (accountId) => dues.get(accountId) ?? null,
    costOf(instanceId) {
      const reading = readings.get(instanceId);
      return reading ? reading.accrued + unreadOf(reading).cost : (rows.find(instanceId)?.accrued ?? 0n);
    },
    balanceOf(accountId) {
      const { balance, unposted } = ledger.booksOf(accountId);
      const left = balance - unposted - unreadCostOf(accountId);
      return left > 0n ? left : 0n;
    },
    spentThisMonth(accountId) {
      const { month, spent } = booksIn(monthOf(clock.now()), accountId);
      return month < monthOf(clock.now()) ? 0n : spent + unreadCostOf(accountId);
    },
    unread(instanceId) {
      const reading = readings.get(instanceId);
      if (!reading) return undefined;
      const { accountId, sinceMs, sinceNs } = reading;
      const runningNs = clock.monotonicNs() - sinceNs;
      return { accountId, day: dayOf(sinceMs), instanceId, runningNs, cost: unreadOf(reading).cost };
    },
    runningInstances: (accountId) => readings.of(accountId).length,
    emptyAt(accountId) {
      const { balance, unposted } = ledger.booksOf(accountId);
      const own = readings.of(accountId);
      const left = balance - unposted;
      const since = own[0];
      const ns = nsUntil(
        left,
        own.map(({ remainder }) => remainder),
        pricePerHour,
      );
      if (ns === null || !since) return null;
      const aheadNs = ns - (clock.monotonicNs() - since.sinceNs);
      return clock.now() + Math.max(0, Number(aheadNs) / 1e6);
    },
    requireUnderLimit(accountId) {
      const limit = monthlyLimitOf(accountId);
      if (limit === null || pricePerHour === 0n || meter.spentThisMonth(accountId) < limit) return;
      throw new AppError(
        "forbidden",
        `this month's usage has reached the account's monthly limit of ${formatMoney(limit)} ${CURRENCY}: raise it with PATCH /v1/auth/me, or wait for the next month`,
      );
    },
    listen: (listener) => void listeners.push(listener),
  };
  return meter;
}
