import type { Ledger } from "../ledger/ledger.ts";
import type { AccountBalance } from "../ledger/schema.ts";
import { dayOf, hourOf, monthOf, nextMonthAt } from "../lib/calendar.ts";
import type { Clock } from "../lib/clock.ts";
import type { Micros } from "../lib/money.ts";
import type { Store } from "../storage/store.ts";
import { accrue, nsUntil } from "./accrual.ts";
import { createFunds, type Funds, inMonth, type Terms } from "./funds.ts";
import { type Counted, meterQueries } from "./queries.ts";
import { createReadings, type Reading } from "./readings.ts";
import { leftOf, levelOf, type Means, type RunwayWarning, type StopReason } from "./runway.ts";

/**
 * A reading is posted to the journal when it is the first of its hour, once it is worth a cent, at the hour's end and when
 * its instance stops: an entry every ten seconds for each would be gigabytes of journal a day at a thousand instances.
 */
const WORTH_AN_ENTRY: Micros = 10_000n;

const SETTLE_AFTER_START_NS = 100_000_000n;

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

export interface Meter extends Funds {
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
  listen(listener: MeterListener): void;
}

/** Counts what running instances cost, by the clock that never steps (billing.md, Meter). */
export function createMeter({ store, clock, ledger, pricePerHour, termsOf }: MeterParts): Meter {
  const rows = meterQueries(store.db);
  const readings = createReadings(store);
  const listeners: MeterListener[] = [];
  /** When each account that runs something is to be settled at the latest; only a hint, so no transaction minds it. */
  const dues = new Map<string, bigint>();

  const dueNs = (accountId: string): bigint | null => dues.get(accountId) ?? null;
  const funds = createFunds({ rows, readings, clock, ledger, pricePerHour, termsOf, dueNs });

  /** Reads some meters of one account. Its balance, and the limit, bound what they may cost together. */
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
      const left = leftOf(account.balance - account.unposted, limit, account.spent).amount;
      const counted = accrue(reading.remainder, nowNs - sinceNs, pricePerHour);
      // What runs on for the moment between the end of the balance and its stop is given away.
      const charged = counted.cost <= left ? counted : { cost: left, remainder: 0n };
      const unposted = reading.unposted + charged.cost;
      const isLate = hourOf(nowMs) !== reading.hour;
      const posts = unposted > 0n && (ends || isLate || !reading.isPosted || unposted >= WORTH_AN_ENTRY);
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
      // The usage that is read between two readings is told by the row of its day: it must be there.
      if (dayOf(nowMs) !== day) rows.addDay({ accountId, day: dayOf(nowMs), instanceId, runningNs: 0n, cost: 0n });
      readings.put(next);
    }
    rows.setBalance(account);
    for (const reading of posted) postUsage(reading);
    return account;
  }

  function postUsage({ accountId, instanceId, unposted, hour }: Counted): void {
    ledger.post({ type: "usage", accountId, amount: -unposted, against: "revenue", usage: { instanceId, hour } });
  }

  function settle(accountId: string, limit: Micros | null): void {
    store.transaction(() => {
      dues.delete(accountId);
      const own = readings.of(accountId);
      if (own.length === 0) return;
      const nowNs = clock.monotonicNs();
      const account = inMonth(monthOf(clock.now()), read(accountId, own, limit, nowNs, false), rows);
      const { monthlyLimit, suspended } = termsOf(accountId);
      const left = leftOf(account.balance - account.unposted, monthlyLimit, account.spent);
      if (suspended) stopAll(accountId, "suspended");
      else if (pricePerHour === 0n) return;
      else if (left.amount === 0n) stopAll(accountId, left.reason);
      else warn(account, monthlyLimit, nowNs);
    });
  }

  function stopAll(accountId: string, reason: StopReason): void {
    for (const { exhausted } of listeners) exhausted(accountId, reason);
  }

  /** Which of its means the account runs out of first, and in how many nanoseconds. */
  function runwayOf(
    { accountId, balance, unposted, spent }: AccountBalance,
    limit: Micros | null,
  ): { ns: bigint; reason: Means } {
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
    dues.set(accountId, readNs + ns);
    const secondsLeft = Math.floor(Number(ns) / 1e9);
    const level = levelOf(secondsLeft);
    if (level === account.runwayWarned) return;
    rows.setBalance({ ...account, runwayWarned: level });
    if (level === null || (account.runwayWarned !== null && level > account.runwayWarned)) return;
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
        // A start after a stand-still is warned afresh.
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
    listen: (listener) => void listeners.push(listener),
  };
  return meter;
}
