import { expect, test } from "bun:test";
import fc from "fast-check";
import { createTokenBuckets } from "../../src/limits/token-buckets.ts";

const RATE = { perSecond: 10, burst: 50 };

test("a burst is admitted at once, then as many per second as the rate says", () => {
  let now = 1_000_000;
  const rates = createTokenBuckets(() => now);
  const letIn = () => Array.from({ length: 200 }, () => rates.take("a", RATE)).filter((wait) => wait === 0).length;
  expect(letIn()).toBe(50);
  now += 1;
  expect(letIn()).toBe(10);
  now += 2.5;
  expect(letIn()).toBe(25);
  now += 1_000;
  expect(letIn()).toBe(50);
});

test("what must wait is admitted after exactly that time", () => {
  let now = 5;
  const rates = createTokenBuckets(() => now);
  rates.charge("a", RATE, 50);
  const wait = rates.take("a", RATE);
  expect(wait).toBeCloseTo(0.1);
  now += wait - 0.001;
  expect(rates.take("a", RATE)).toBeGreaterThan(0);
  now += 0.001;
  expect(rates.take("a", RATE)).toBe(0);
});

test("whatever is asked for and when, nobody gets more than a burst and the rate over time", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ after: fc.double({ min: 0, max: 3, noNaN: true }), cost: fc.integer({ min: 1, max: 80 }) })),
      (steps) => {
        let now = 0;
        let had = 0;
        const rates = createTokenBuckets(() => now);
        for (const { after, cost } of steps) {
          now += after;
          if (rates.take("a", RATE, cost) === 0) had += cost;
          // The last one admitted may cost more than a whole burst.
          expect(had).toBeLessThanOrEqual(RATE.burst + RATE.perSecond * now + 80);
        }
      },
    ),
  );
});

test("what costs more than a whole burst is admitted once, and paid for by waiting", () => {
  const now = 0;
  const rates = createTokenBuckets(() => now);
  expect(rates.take("a", RATE, 500)).toBe(0);
  expect(rates.take("a", RATE)).toBeCloseTo(45.1);
});

test("each key has its own bucket", () => {
  const rates = createTokenBuckets(() => 0);
  rates.charge("a", RATE, 1_000);
  expect(rates.take("b", RATE)).toBe(0);
  expect(rates.wait("a", RATE)).toBeGreaterThan(90);
});

test("the number of buckets is bounded: of more debts the newest are kept", () => {
  const rates = createTokenBuckets(() => 0, 100);
  const debtors = Array.from({ length: 1_000 }, (_, at) => `debtor ${at}`);
  for (const debtor of debtors) rates.charge(debtor, RATE, 10_000);
  expect(debtors.filter((debtor) => rates.wait(debtor, RATE) > 0)).toEqual(debtors.slice(-100));
});

test("newcomers never evict a recent debt while buckets that are full can go", () => {
  let now = 0;
  const rates = createTokenBuckets(() => now, 100);
  for (let at = 0; at < 5_000; at++) {
    now += 0.2;
    rates.take(`passer-by ${at}`, RATE);
  }
  rates.charge("debtor", RATE, 10_000);
  for (let at = 0; at < 90; at++) rates.take(`another ${at}`, RATE);
  expect(rates.wait("debtor", RATE)).toBeGreaterThan(900);
});
