import { afterEach, beforeEach, expect, test } from "bun:test";
import { remainingOf, warningLevelOf } from "../../src/meter/runway.ts";
import { DAY, HOUR, MINUTE, SECOND } from "../lib/hand-clock.ts";
import { checkBooks, HOURLY, type Metered, openMetered } from "./metered.ts";

let metered: Metered;
beforeEach(() => {
  metered = openMetered();
});
afterEach(async () => {
  checkBooks(metered);
  await metered[Symbol.asyncDispose]();
});

/** Lets time pass as in a running server, which reads the meters every ten seconds and when an account is due. */
function run(accountId: string, ms: number): void {
  for (let passed = 0; passed < ms; passed += 10 * SECOND) {
    metered.clock.advance(10 * SECOND);
    metered.meter.settle(accountId);
  }
}

const warnings = (): (string | number)[] =>
  metered.told.map((told) => ("stopped" in told ? told.stopped : told.secondsLeft));

test("levels are 24 hours, 1 hour and 5 minutes, each from its own second on", () => {
  expect([86_401, 86_400, 3_601, 3_600, 301, 300, 0].map(warningLevelOf)).toEqual([
    null,
    86_400,
    86_400,
    3_600,
    3_600,
    300,
    300,
  ]);
});

test.each([
  [100n, null, 0n, 100n, "insufficient_balance"],
  [100n, 50n, 20n, 30n, "monthly_limit"],
  [100n, 120n, 20n, 100n, "insufficient_balance"],
  [100n, 20n, 50n, 0n, "monthly_limit"],
  [0n, 20n, 50n, 0n, "insufficient_balance"],
] as const)(
  "with a balance of %p, a limit of %p and %p spent, what is left is %p: %p",
  (balance, limit, spent, amount, reason) => {
    expect(remainingOf(balance, limit, spent)).toEqual({ amount, reason });
  },
);

test("each level is reported once, on the way down, and then the stop", () => {
  const payer = metered.account(26n * HOURLY);
  const { accountId } = payer;
  metered.run(payer);
  run(accountId, 27 * HOUR);
  expect(warnings()).toEqual([86_400, 3_600, 300, "insufficient_balance"]);
  expect(metered.told[0]).toMatchObject({ reason: "insufficient_balance" });
});

test("a warning says when instances stop", () => {
  const payer = metered.account(HOURLY / 2n);
  const { accountId } = payer;
  metered.run(payer);
  metered.meter.settle(accountId);
  const stopsAt = metered.clock.now() + 30 * MINUTE;
  expect(metered.told).toEqual([{ accountId, reason: "insufficient_balance", secondsLeft: 1_800, stopsAt }]);
});

test("if several levels are passed at once, only the last is reported", () => {
  const payer = metered.account(48n * HOURLY);
  const { accountId } = payer;
  metered.run(payer);
  metered.meter.settle(accountId);
  expect(warnings()).toEqual([]);
  metered.clock.advance(48 * HOUR - 4 * MINUTE);
  metered.meter.settle(accountId);
  expect(warnings()).toEqual([240]);
});

test("a top-up starts the levels again; a restart does not", () => {
  const payer = metered.account(2n * HOURLY);
  const { accountId } = payer;
  metered.run(payer);
  run(accountId, 70 * MINUTE);
  expect(warnings()).toEqual([7_190, 3_600]);
  metered.crash();
  metered.meter.settle(accountId);
  expect(warnings()).toEqual([7_190, 3_600]);
  metered.ledger.post({ type: "credit", accountId, amount: 48n * HOURLY, against: "grants", note: "more" });
  run(accountId, MINUTE);
  metered.clock.advance(47 * HOUR);
  metered.meter.settle(accountId);
  expect(warnings()).toHaveLength(3);
});

test("the runway is that of the limit if it ends first", () => {
  const payer = metered.account(10_000_000n);
  metered.setTerms(payer, { monthlyLimit: 2n * HOURLY });
  metered.run(payer);
  run(payer.accountId, 3 * HOUR);
  expect(metered.told.map((told) => ("stopped" in told ? told.stopped : [told.reason, told.secondsLeft]))).toEqual([
    ["monthly_limit", 7_190],
    ["monthly_limit", 3_600],
    ["monthly_limit", 300],
    "monthly_limit",
  ]);
});

test("if more instances make it shorter, the new runway is reported", () => {
  const payer = metered.account(30n * HOURLY);
  metered.run(payer);
  metered.meter.settle(payer.accountId);
  expect(warnings()).toEqual([]);
  metered.run(payer);
  metered.meter.settle(payer.accountId);
  expect(warnings()).toEqual([15 * 3_600]);
  metered.clock.advance(DAY);
  metered.meter.settle(payer.accountId);
  expect(warnings().at(-1)).toBe("insufficient_balance");
});
