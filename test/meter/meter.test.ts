import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import type { Caller } from "../../src/limits/caller.ts";
import { DAY, HOUR, MINUTE, SECOND } from "../lib/hand-clock.ts";
import { checkBooks, HOURLY, type Metered, MORNING, openMetered } from "./metered.ts";

let metered: Metered;
let payer: Caller;

beforeEach(() => {
  metered = openMetered();
  payer = metered.account(10_000_000n);
});
afterEach(async () => {
  checkBooks(metered);
  await metered[Symbol.asyncDispose]();
});

const settle = () => metered.meter.settle(payer.accountId);
const costOf = (instanceId: string) => metered.meter.costOf(instanceId);
const balance = () => metered.meter.balanceOf(payer.accountId);
const spent = () => metered.meter.standingOf(payer.accountId).spentThisMonth;
const stateOf = (instanceId: string) => {
  const { status, statusReason } = metered.instances.find(instanceId) ?? {};
  return [status, statusReason];
};
const days = (where = "1") =>
  metered.store.sqlite
    .query(`SELECT day, running_ns / 1000000 AS ms, cost FROM usage_days WHERE ${where} ORDER BY day, cost`)
    .all();
const usage = () =>
  metered.store.sqlite
    .query<{ hour: number; amount: number }, []>(
      `SELECT hour, amount FROM journal_entries JOIN postings USING (entry_id)
       WHERE type = 'usage' AND ledger_account = 'revenue' ORDER BY entry_id`,
    )
    .all();

describe("a running instance", () => {
  test("costs its time, live and not only when it is settled", () => {
    const instanceId = metered.run(payer);
    metered.clock.advance(HOUR);
    expect([costOf(instanceId), balance(), spent()]).toEqual([HOURLY, 10_000_000n - HOURLY, HOURLY]);
    settle();
    expect([costOf(instanceId), balance(), spent()]).toEqual([HOURLY, 10_000_000n - HOURLY, HOURLY]);
    metered.clock.advance(HOUR);
    expect([costOf(instanceId), balance(), spent()]).toEqual([2n * HOURLY, 10_000_000n - 2n * HOURLY, 2n * HOURLY]);
  });

  test("costs nothing once it is stopped, while it was stopped, or after it was deleted", () => {
    const instanceId = metered.run(payer);
    metered.clock.advance(HOUR);
    metered.stop(instanceId);
    metered.clock.advance(DAY);
    metered.stop(instanceId);
    settle();
    expect(costOf(instanceId)).toBe(HOURLY);
    metered.start(instanceId);
    metered.clock.advance(HOUR);
    metered.remove(instanceId);
    metered.clock.advance(DAY);
    settle();
    expect(balance()).toBe(10_000_000n - 2n * HOURLY);
    expect(days()).toEqual([
      { day: "2026-11-15", ms: HOUR, cost: 30_000 },
      { day: "2026-11-16", ms: HOUR, cost: 30_000 },
    ]);
  });

  test("continues as before if it is started again while it runs", () => {
    const instanceId = metered.run(payer);
    metered.clock.advance(10 * SECOND);
    settle();
    metered.clock.advance(10 * SECOND);
    metered.meter.start(instanceId, payer.accountId);
    metered.start(instanceId);
    expect(costOf(instanceId)).toBe(166n);
    metered.stop(instanceId);
    expect(balance()).toBe(10_000_000n - 166n);
  });

  test("that costs nothing by its host's price is never stopped or warned about", async () => {
    await using free = openMetered(0n);
    const poor = free.account(0n);
    free.setTerms(poor, { monthlyLimit: 0n });
    const instanceId = free.run(poor);
    free.clock.advance(DAY);
    free.meter.settle(poor.accountId);
    expect([free.instances.find(instanceId)?.status, free.told]).toEqual(["running", []]);
    expect([free.meter.emptyAt(poor.accountId), free.meter.dueNs(poor.accountId)]).toEqual([null, null]);
    free.meter.requireUnderLimit(poor.accountId);
    checkBooks(free);
  });
});

test("has a row for the new day from the first reading after midnight, which includes live usage", () => {
  metered.run(payer);
  metered.clock.advance(15 * HOUR);
  settle();
  expect(days("day = '2026-11-16'")).toEqual([{ day: "2026-11-16", ms: 0, cost: 0 }]);
});

describe("the journal", () => {
  test("gets usage at an hour's first reading, by the cent, at the hour's end and at the stop, each in its hour", () => {
    const instanceId = metered.run(payer);
    const hour = Math.floor(MORNING / HOUR);
    for (let passed = 0; passed < 30 * MINUTE; passed += 10 * SECOND) {
      metered.clock.advance(10 * SECOND);
      settle();
    }
    expect(usage()).toEqual([
      { hour, amount: 83 },
      { hour, amount: 10_000 },
      { hour, amount: 4_917 },
    ]);
    metered.clock.advance(MINUTE);
    metered.stop(instanceId);
    expect(usage().at(-1)).toEqual({ hour: hour + 1, amount: 500 });
  });

  test("gets at the next start what was committed before a crash, and nothing for the time after it", () => {
    const instanceId = metered.run(payer);
    for (const _ of ["the first of its hour", "what is not worth an entry"]) {
      metered.clock.advance(10 * SECOND);
      settle();
    }
    metered.clock.advance(9 * SECOND);
    expect(usage().map(({ amount }) => amount)).toEqual([83]);
    metered.crash();
    expect([costOf(instanceId), balance()]).toEqual([166n, 10_000_000n - 166n]);
    expect(usage().map(({ amount }) => amount)).toEqual([83, 83]);
    metered.clock.advance(HOUR);
    expect(costOf(instanceId)).toBe(166n + HOURLY);
  });

  test("keeps what was counted at the old price after a change between two starts", () => {
    const instanceId = metered.run(payer);
    metered.clock.advance(HOUR);
    settle();
    metered.crash(60_000n);
    metered.clock.advance(HOUR);
    settle();
    expect(costOf(instanceId)).toBe(90_000n);
    const prices = metered.store.sqlite.query("SELECT price_per_hour AS price FROM prices ORDER BY since").all();
    expect(prices).toEqual([{ price: 30_000 }, { price: 60_000 }]);
  });
});

describe("the books agree with the price of each day", () => {
  const passHour = () => {
    metered.clock.advance(HOUR);
    settle();
    checkBooks(metered);
  };

  test("where the clock was set back to before the price was changed, and the host started again", () => {
    metered.run(payer);
    passHour();
    metered.clock.step(5 * DAY);
    metered.crash(60_000n);
    passHour();
    metered.clock.step(-3 * DAY);
    metered.crash(60_000n);
    passHour();
  });

  test("where it was set back while the host ran, and where it comes to the later price again", () => {
    metered.run(payer);
    passHour();
    metered.clock.step(5 * DAY);
    metered.crash(60_000n);
    passHour();
    metered.clock.step(-3 * DAY);
    settle();
    passHour();
    metered.crash(90_000n);
    passHour();
    for (let hours = 0; hours < 5 * 24; hours++) passHour();
    metered.run(payer);
    passHour();
  });

  test("where it was set back while nothing was running", () => {
    metered.clock.step(5 * DAY);
    metered.crash(10_000n);
    metered.clock.step(DAY);
    metered.crash(60_000n);
    metered.clock.step(-DAY);
    metered.run(payer);
    passHour();
  });
});

describe("at the end of the balance", () => {
  test("everything stops in the transaction that finds it, and not a micro-USDC more is charged", () => {
    const poor = metered.account(100n);
    const running = [metered.run(poor), metered.run(poor), metered.run(poor)];
    metered.clock.advance(10 * SECOND);
    expect(() =>
      metered.store.transaction(() => {
        metered.meter.settle(poor.accountId);
        throw new Error("undone");
      }),
    ).toThrow("undone");
    expect(running.map(stateOf)).toEqual(running.map(() => ["running", null]));
    metered.meter.settle(poor.accountId);
    expect(running.map(stateOf)).toEqual(running.map(() => ["stopped", "insufficient_balance"]));
    expect(running.map(costOf).reduce((sum, cost) => sum + cost)).toBe(100n);
    metered.clock.advance(DAY);
    metered.meter.settle(poor.accountId);
    expect(metered.meter.balanceOf(poor.accountId)).toBe(0n);
    expect(metered.ledger.accountBalance(poor.accountId)).toMatchObject({ balance: 0n, unposted: 0n, spent: 100n });
  });

  test("the amounts shown end there too, before the meter has found it", () => {
    const poor = metered.account(100n);
    const { accountId } = poor;
    const running = [metered.run(poor), metered.run(poor)];
    metered.meter.settle(accountId);
    metered.clock.advance(10 * SECOND);
    expect(running.map((instanceId) => metered.meter.unread(instanceId)?.cost)).toEqual([83n, 17n]);
    const shown = () => [
      ...running.map(costOf),
      metered.meter.balanceOf(accountId),
      metered.meter.standingOf(accountId).spentThisMonth,
    ];
    expect(shown()).toEqual([83n, 17n, 0n, 100n]);
    metered.meter.settle(accountId);
    expect(shown()).toEqual([83n, 17n, 0n, 100n]);
  });

  test("the meter is due at that moment, to less than the time of a micro-USDC", () => {
    const poor = metered.account(100n);
    metered.run(poor);
    metered.meter.settle(poor.accountId);
    const dueNs = metered.meter.dueNs(poor.accountId) ?? 0n;
    expect(dueNs).toBe(12_000_000_000n);
    metered.clock.advance(12 * SECOND - 1);
    metered.meter.settle(poor.accountId);
    expect(metered.meter.runningInstances(poor.accountId)).toBe(1);
    metered.clock.advance(1);
    metered.meter.settle(poor.accountId);
    expect(metered.meter.runningInstances(poor.accountId)).toBe(0);
  });

  test("the moment is the same however long settling takes", () => {
    const poor = metered.account(100n);
    metered.run(poor);
    const { monotonicNs } = metered.clock;
    const slow = spyOn(metered.clock, "monotonicNs").mockImplementation(() => {
      metered.clock.advance(1);
      return monotonicNs();
    });
    metered.meter.settle(poor.accountId);
    slow.mockRestore();
    expect(metered.meter.dueNs(poor.accountId)).toBe(12_000_000_000n);
  });

  test("more starts do not delay the moment", () => {
    const poor = metered.account(100n);
    metered.run(poor);
    metered.meter.settle(poor.accountId);
    metered.clock.advance(12 * SECOND - 50);
    metered.run(poor);
    expect(metered.meter.dueNs(poor.accountId)).toBe(12_000_000_000n);
  });

  test("a credit by another process in between is included", () => {
    const poor = metered.account(100n);
    const instanceId = metered.run(poor);
    metered.meter.settle(poor.accountId);
    metered.clock.advance(11 * SECOND);
    const { accountId } = poor;
    metered.ledger.post({ type: "credit", accountId, amount: 100n, against: "grants", note: "more" });
    metered.clock.advance(2 * SECOND);
    metered.meter.settle(accountId);
    expect([metered.meter.runningInstances(accountId), costOf(instanceId)]).toEqual([1, 108n]);
    expect(metered.meter.dueNs(accountId)).toBe(24_000_000_000n);
  });

  test("the moment is not shown if it is beyond the calendar", async () => {
    await using cheap = openMetered(1n);
    const rich = cheap.account(10n ** 14n);
    cheap.run(rich);
    cheap.meter.settle(rich.accountId);
    expect(cheap.meter.emptyAt(rich.accountId)).toBeNull();
  });

  test("emptyAt shows the moment, live, and null if nothing runs", () => {
    expect(metered.meter.emptyAt(payer.accountId)).toBeNull();
    metered.run(payer);
    const emptyAt = metered.clock.now() + (10_000_000 / 30_000) * HOUR;
    expect(metered.meter.emptyAt(payer.accountId)).toBeCloseTo(emptyAt, 0);
    metered.clock.advance(5 * SECOND);
    expect(metered.meter.emptyAt(payer.accountId)).toBeCloseTo(emptyAt, 0);
    settle();
    expect(metered.meter.emptyAt(payer.accountId)).toBeCloseTo(emptyAt, 0);
  });
});

describe("a monthly limit", () => {
  test("stops at its usage and not beyond, and forbids a start until it is raised", () => {
    metered.setTerms(payer, { monthlyLimit: 30_000n });
    const instanceId = metered.run(payer);
    metered.clock.advance(2 * HOUR);
    settle();
    expect([stateOf(instanceId), spent()]).toEqual([["stopped", "monthly_limit"], 30_000n]);
    expect(() => metered.meter.requireUnderLimit(payer.accountId)).toThrow("monthly limit of 0.030000 USDC");
    metered.setTerms(payer, { monthlyLimit: 30_001n });
    metered.meter.requireUnderLimit(payer.accountId);
    metered.setTerms(payer, { monthlyLimit: null });
    metered.meter.requireUnderLimit(payer.accountId);
  });

  test("is exceeded by no amount shown, before the meter has found it", () => {
    metered.setTerms(payer, { monthlyLimit: 100n });
    const instanceId = metered.run(payer);
    settle();
    metered.clock.advance(MINUTE);
    expect([costOf(instanceId), balance(), spent()]).toEqual([100n, 10_000_000n - 100n, 100n]);
    settle();
    expect([costOf(instanceId), balance(), spent()]).toEqual([100n, 10_000_000n - 100n, 100n]);
  });

  test.each([[0n], [29_999n], [30_000n]])("lowered to %p, below what was used, stops at once", (monthlyLimit) => {
    const instanceId = metered.run(payer);
    metered.clock.advance(HOUR);
    metered.setTerms(payer, { monthlyLimit });
    metered.meter.limitChanged(payer.accountId);
    expect(stateOf(instanceId)).toEqual(["stopped", "monthly_limit"]);
  });

  test("lowered for a moment makes no usage free", () => {
    const instanceId = metered.run(payer);
    for (let time = 0; time < 10; time++) {
      metered.clock.advance(9 * SECOND);
      metered.setTerms(payer, { monthlyLimit: BigInt(time) });
      metered.meter.limitChanged(payer.accountId);
      expect(stateOf(instanceId)).toEqual(["stopped", "monthly_limit"]);
      metered.setTerms(payer, { monthlyLimit: null });
      metered.meter.limitChanged(payer.accountId);
      metered.start(instanceId);
    }
    expect(costOf(instanceId)).toBe(750n);
  });

  test("reached together with the end of the balance is reported as the balance", () => {
    const poor = metered.account(100n);
    metered.setTerms(poor, { monthlyLimit: 100n });
    const instanceId = metered.run(poor);
    metered.clock.advance(MINUTE);
    metered.meter.settle(poor.accountId);
    expect(stateOf(instanceId)).toEqual(["stopped", "insufficient_balance"]);
  });

  test("starts again with the month, also in the last moment of the old one", () => {
    metered.clock.advance(Date.UTC(2026, 10, 30, 23) - MORNING);
    metered.setTerms(payer, { monthlyLimit: 30_000n });
    const instanceId = metered.run(payer);
    metered.clock.advance(HOUR);
    settle();
    expect([stateOf(instanceId), spent()]).toEqual([["running", null], 0n]);
    metered.clock.advance(HOUR - 1);
    settle();
    expect(stateOf(instanceId)[0]).toBe("running");
    metered.clock.advance(1);
    settle();
    expect(stateOf(instanceId)).toEqual(["stopped", "monthly_limit"]);
    expect(days().map((row) => (row as { cost: number }).cost)).toEqual([30_000, 30_000]);
  });

  test("that would be reached after the month's end gives no runway", () => {
    metered.clock.advance(Date.UTC(2026, 10, 30, 23) - MORNING);
    metered.setTerms(payer, { monthlyLimit: 60_000n });
    metered.run(payer);
    settle();
    expect(metered.told).toEqual([]);
  });
});

describe("a suspended account", () => {
  test("has its instances stopped at its next settling, and pays for them until then", async () => {
    const instanceId = metered.run(payer);
    metered.clock.advance(10 * SECOND);
    metered.setTerms(payer, { suspended: true });
    settle();
    expect([stateOf(instanceId), costOf(instanceId)]).toEqual([["stopped", "suspended"], 83n]);
    expect(metered.told).toEqual([{ accountId: payer.accountId, stopped: "suspended" }]);
  });

  test("has them stopped also if nothing is charged", async () => {
    await using free = openMetered(0n);
    const person = free.account(0n);
    const instanceId = free.run(person);
    free.setTerms(person, { suspended: true });
    free.meter.settle(person.accountId);
    expect(free.instances.find(instanceId)?.statusReason).toBe("suspended");
  });
});

describe("a step of the wall clock", () => {
  test.each([[-400 * DAY], [-HOUR], [-1], [1], [HOUR], [400 * DAY]])("by %p ms changes no bill", (ms) => {
    const instanceId = metered.run(payer);
    metered.clock.advance(30 * MINUTE);
    metered.clock.step(ms);
    expect(costOf(instanceId)).toBe(15_000n);
    settle();
    metered.clock.advance(30 * MINUTE);
    settle();
    metered.clock.step(-ms);
    metered.clock.advance(HOUR);
    metered.stop(instanceId);
    expect([costOf(instanceId), balance()]).toEqual([60_000n, 10_000_000n - 60_000n]);
  });

  test("into another month and back neither forgets the limit's usage nor charges it to a later month", () => {
    metered.setTerms(payer, { monthlyLimit: 30_000n });
    const instanceId = metered.run(payer);
    metered.clock.advance(30 * MINUTE);
    settle();
    metered.clock.step(100 * 365 * DAY);
    settle();
    expect(spent()).toBe(0n);
    metered.clock.step(-100 * 365 * DAY);
    settle();
    expect(spent()).toBe(15_000n);
    metered.clock.advance(30 * MINUTE);
    settle();
    expect(stateOf(instanceId)).toEqual(["stopped", "monthly_limit"]);
    metered.clock.advance(30 * DAY);
    expect(spent()).toBe(0n);
    metered.meter.requireUnderLimit(payer.accountId);
  });
});

describe("a transaction that is rolled back", () => {
  const undone = (work: () => void) =>
    expect(() =>
      metered.store.transaction(() => {
        work();
        throw new Error("undone");
      }),
    ).toThrow("undone");

  test("leaves the meter as it was, whatever was done in it", () => {
    const [kept, stopped] = [metered.run(payer), metered.run(payer)];
    metered.clock.advance(10 * SECOND);
    settle();
    metered.stop(stopped);
    metered.clock.advance(5 * SECOND);
    const state = () => [
      costOf(kept),
      costOf(stopped),
      balance(),
      spent(),
      metered.meter.runningInstances(payer.accountId),
    ];
    const before = state();
    undone(settle);
    undone(() => metered.stop(kept));
    undone(() => metered.start(stopped));
    undone(() => metered.remove(kept));
    undone(() => {
      metered.stop(kept);
      metered.start(kept);
      metered.start(stopped);
      settle();
      metered.remove(kept);
      metered.run(payer);
    });
    expect(state()).toEqual(before);
    metered.clock.advance(5 * SECOND);
    settle();
    expect(costOf(kept)).toBe(166n);
  });

  test("in a shared commit undoes only its own changes", async () => {
    const { store } = metered;
    const [one, other] = [metered.run(payer), metered.run(payer)];
    metered.clock.advance(10 * SECOND);
    const results = await Promise.allSettled([
      store.commitSoon(() => metered.stop(one), "full"),
      store.commitSoon(() => {
        metered.stop(other);
        metered.start(one);
        throw new Error("undone");
      }, "full"),
      store.commitSoon(settle, "full"),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    metered.clock.advance(10 * SECOND);
    expect([costOf(one), costOf(other)]).toEqual([83n, 166n]);
    expect(metered.meter.runningInstances(payer.accountId)).toBe(1);
  });

  test("counts two changes of one instance in a shared commit once", async () => {
    const { store } = metered;
    const instanceId = metered.run(payer);
    metered.clock.advance(10 * SECOND);
    await Promise.all([
      store.commitSoon(() => metered.stop(instanceId), "full"),
      store.commitSoon(() => metered.start(instanceId), "full"),
      store.commitSoon(() => metered.start(instanceId), "full"),
    ]);
    metered.clock.advance(10 * SECOND);
    metered.stop(instanceId);
    expect(costOf(instanceId)).toBe(166n);
  });
});
