import type { Ledger } from "../ledger/ledger.ts";
import type { AccountBalance } from "../ledger/schema.ts";
import { dayOf, hourOf, monthOf, nextMonthAt } from "../lib/calendar.ts";
import type { Clock } from "../lib/clock.ts";
import type { Micros } from "../lib/money.ts";
import type { Store } from "../storage/store.ts";
import { accrue, nsUntil } from "./accrual.ts";
import { createFunds, type Funds, inMonth, type Terms } from "./funds.ts";
import { meterQueries, type StoredReading } from "./queries.ts";
import { createReadings, type Reading } from "./readings.ts";
import { type RunwayWarning, remainingOf, type Shortage, type StopReason, warningLevelOf } from "./runway.ts";

/**
 * A reading is posted to the journal if it is the first of its hour, once it is worth a cent, at the end of the hour,
 * and when its instance stops. Posting every reading would write gigabytes of journal a day for a thousand instances.
 */
const MIN_ENTRY: Micros = 10_000n;

const SETTLE_AFTER_START_NS = 100_000_000n;

export interface MeterParts {
  store: Store;
  clock: Clock;
  ledger: Ledger;
  pricePerHour: Micros;
  termsOf(accountId: string): Terms;
}

/** Called in the transaction that settles, so that the consequences are committed with it. */
export interface MeterListener {
  /** The account's instances must be stopped. */
  exhausted(accountId: string, reason: StopReason): void;
  runwayShort(accountId: string, warning: RunwayWarning): void;
  /** An account must be settled in so many nanoseconds, earlier than known before. Outside of any transaction. */
  dueSoon?(inNs: bigint): void;
}

export interface Meter extends Funds {
  /** Starts metering, in the transaction that starts the instance. Does nothing if it is metered already. */
  start(instanceId: string, accountId: string): void;
  /** Charges and posts the rest, in the transaction that stops the instance. */
  stop(instanceId: string): void;
  /** Stops, and removes the meter; the instance's cost stays in the journal and in the days' usage. */
  remove(instanceId: string): void;
  /** Resumes metering the instances that ran when the server stopped. Downtime is not charged. */
  resume(running: readonly { instanceId: string; accountId: string }[]): void;
  /** Reads an account's meters, charges them, and stops its instances if the balance or the limit is used up. */
  settle(accountId: string): void;
  /**
   * The same, in the transaction that changed the account's monthly limit. Earlier usage is charged in full: otherwise
   * lowering the limit for a moment would make usage free.
   */
  limitChanged(accountId: string): void;
  /** The accounts with running instances. */
  accountIds(): string[];
  /** The latest time to settle the account, by the monotonic clock; null if it is not known to run out. */
  dueNs(accountId: string): bigint | null;
  /** Whether settling the account stops its instances, whatever its balance. */
  isSuspended(accountId: string): boolean;
  listen(listener: MeterListener): void;
}

/** Meters what running instances cost, by the monotonic clock (docs/contract/billing.md, Meter). */
export function createMeter({ store, clock, ledger, pricePerHour, termsOf }: MeterParts): Meter {
  const rows = meterQueries(store.db);
  const readings = createReadings(store);
  const listeners: MeterListener[] = [];
  /** The latest time to settle each account. Only a hint, so it is not rolled back with a transaction. */
  const dueTimes = new Map<string, bigint>();

  const dueNs = (accountId: string): bigint | null => dueTimes.get(accountId) ?? null;
  const funds = createFunds({ rows, readings, clock, ledger, pricePerHour, termsOf, dueNs });

  /** Reads some meters of one account, charging at most what its balance and the limit allow. */
  function read(
    accountId: string,
    some: Reading[],
    limit: Micros | null,
    nowNs: bigint,
    ends: boolean,
  ): AccountBalance {
    const nowMs = clock.now();
    let account = ledger.accountBalance(accountId);
    const posted: Reading[] = [];
    for (const reading of some) {
      const { instanceId, sinceNs, sinceMs } = reading;
      const day = dayOf(sinceMs);
      account = inMonth(monthOf(sinceMs), account, rows);
      const left = remainingOf(account.balance - account.unposted, limit, account.spent).amount;
      const counted = accrue(reading.remainder, nowNs - sinceNs, pricePerHour);
      // The moment between the end of the balance and the stop is free.
      const charged = counted.cost <= left ? counted : { cost: left, remainder: 0n };
      const unposted = reading.unposted + charged.cost;
      const isLate = hourOf(nowMs) !== reading.hour;
      const posts = unposted > 0n && (ends || isLate || !reading.isPosted || unposted >= MIN_ENTRY);
      const next: Reading = {
        ...reading,
        sinceNs: nowNs,
        sinceMs: nowMs,
        accrued: reading.accrued + charged.cost,
        remainder: charged.remainder,
        unposted: posts ? 0n : unposted,
        hour: posts || unposted === 0n ? hourOf(nowMs) : reading.hour,
        isPosted: !isLate && (posts || reading.isPosted),
      };
      if (posts) posted.push({ ...next, unposted, hour: reading.hour });
      account = {
        ...account,
        balance: posts ? account.balance - unposted : account.balance,
        unposted: account.unposted + next.unposted - reading.unposted,
        spent: account.spent + charged.cost,
      };
      rows.write(next);
      rows.addDay({ accountId, day, instanceId, runningNs: nowNs - sinceNs, cost: charged.cost });
      if (dayOf(nowMs) !== day) {
        // The clock may have been set, to where another price was noted.
        rows.notePrice(pricePerHour, nowMs);
        // Live usage between two readings is shown in its day's row, which must therefore exist.
        rows.addDay({ accountId, day: dayOf(nowMs), instanceId, runningNs: 0n, cost: 0n });
      }
      readings.put(next);
    }
    rows.setBalance(account);
    for (const reading of posted) postUsage(reading);
    return account;
  }

  function postUsage({ accountId, instanceId, unposted, hour }: StoredReading): void {
    ledger.post({ type: "usage", accountId, amount: -unposted, against: "revenue", usage: { instanceId, hour } });
  }

  function settle(accountId: string, limit: Micros | null): void {
    store.transaction(() => {
      dueTimes.delete(accountId);
      const own = readings.of(accountId);
      if (own.length === 0) return;
      const nowNs = clock.monotonicNs();
      const account = inMonth(monthOf(clock.now()), read(accountId, own, limit, nowNs, false), rows);
      const { monthlyLimit, suspended } = termsOf(accountId);
      const left = remainingOf(account.balance - account.unposted, monthlyLimit, account.spent);
      if (suspended) stopAll(accountId, "suspended");
      else if (pricePerHour === 0n) return;
      else if (left.amount === 0n) stopAll(accountId, left.reason);
      else warn(account, monthlyLimit, nowNs);
    });
  }

  function stopAll(accountId: string, reason: StopReason): void {
    for (const { exhausted } of listeners) exhausted(accountId, reason);
  }

  /** What the account runs out of first, and in how many nanoseconds. */
  function runwayOf(
    { accountId, balance, unposted, spent }: AccountBalance,
    limit: Micros | null,
  ): { ns: bigint; reason: Shortage } {
    const remainders = readings.of(accountId).map(({ remainder }) => remainder);
    const ns = nsUntil(balance - unposted, remainders, pricePerHour) ?? 0n;
    const limitNs = limit === null ? null : nsUntil(limit - spent, remainders, pricePerHour);
    const monthNs = BigInt(nextMonthAt(clock.now()) - clock.now()) * 1_000_000n;
    const isFirst = limitNs !== null && limitNs < ns && limitNs < monthNs;
    return isFirst ? { ns: limitNs, reason: "monthly_limit" } : { ns, reason: "insufficient_balance" };
  }

  function warn(account: AccountBalance, limit: Micros | null, readNs: bigint): void {
    const { accountId } = account;
    const { ns, reason } = runwayOf(account, limit);
    dueTimes.set(accountId, readNs + ns);
    const secondsLeft = Math.floor(Number(ns) / 1e9);
    const level = warningLevelOf(secondsLeft);
    if (level === account.runwayWarned) return;
    rows.setBalance({ ...account, runwayWarned: level });
    if (level === null || (account.runwayWarned !== null && level > account.runwayWarned)) return;
    const warning = { reason, secondsLeft, stopsAt: clock.now() + secondsLeft * 1000 };
    for (const { runwayShort } of listeners) runwayShort(accountId, warning);
  }

  /** Not at once: a thousand instances may be started in a row, and each settling reads all of them. */
  function settleSoon(accountId: string): void {
    const soonNs = clock.monotonicNs() + SETTLE_AFTER_START_NS;
    const dueNs = dueTimes.get(accountId);
    if (dueNs !== undefined && dueNs <= soonNs) return;
    dueTimes.set(accountId, soonNs);
    for (const { dueSoon } of listeners) dueSoon?.(SETTLE_AFTER_START_NS);
  }

  function begin(instanceId: string, accountId: string): void {
    const row = rows.find(instanceId);
    const sinceMs = clock.now();
    const { accrued = 0n, remainder = 0n } = row ?? {};
    const counted = { instanceId, accountId, accrued, remainder, unposted: 0n, hour: hourOf(sinceMs) };
    readings.put({ ...counted, sinceNs: clock.monotonicNs(), sinceMs, isPosted: false });
    rows.write(counted);
    rows.addDay({ accountId, day: dayOf(sinceMs), instanceId, runningNs: 0n, cost: 0n });
    settleSoon(accountId);
  }

  const meter: Meter = {
    ...funds,
    start(instanceId, accountId) {
      if (readings.get(instanceId)) return;
      store.transaction(() => {
        rows.notePrice(pricePerHour, clock.now());
        // After nothing was running, the account is warned again.
        if (readings.countOf(accountId) === 0)
          rows.setBalance({ ...ledger.accountBalance(accountId), runwayWarned: null });
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
          const account = ledger.accountBalance(row.accountId);
          rows.write({ ...row, unposted: 0n });
          rows.setBalance({ ...account, unposted: account.unposted - row.unposted });
          postUsage(row);
        }
        for (const { instanceId, accountId } of running) begin(instanceId, accountId);
      });
    },
    settle: (accountId) => settle(accountId, termsOf(accountId).monthlyLimit),
    limitChanged: (accountId) => settle(accountId, null),
    accountIds: readings.accountIds,
    dueNs,
    isSuspended: (accountId) => termsOf(accountId).suspended,
    listen: (listener) => void listeners.push(listener),
  };
  return meter;
}
