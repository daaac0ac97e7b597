import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { dayOf, hourOf, monthOf, msToNextHour, nextMonthAt } from "../../src/lib/calendar.ts";
import { accrue, nsUntil } from "../../src/meter/accrual.ts";

const RUNS = 20_000;
/** One micro-USDC, in the unit that accrual counts in. */
const MICRO = 3_600_000_000_000n;
const price = fc.bigInt({ min: 0n, max: 10_000_000_000n });
const elapsed = fc.oneof(fc.bigInt({ min: 0n, max: 10_000_000_000n }), fc.bigInt({ min: 0n, max: 10n ** 17n }));
const remainder = fc.bigInt({ min: 0n, max: MICRO - 1n });

describe("accrual", () => {
  test("an hour costs the price, a fraction of a microsecond nothing, and the remainder is kept", () => {
    expect(accrue(0n, MICRO, 30_000n)).toEqual({ cost: 30_000n, remainder: 0n });
    expect(accrue(0n, 10_000_000_000n, 30_000n)).toEqual({ cost: 83n, remainder: 1_200_000_000_000n });
    expect(accrue(0n, 111n, 30_000n)).toEqual({ cost: 0n, remainder: 3_330_000n });
  });

  test("any partition of the time gives the same bill", () => {
    fc.assert(
      fc.property(fc.array(elapsed, { minLength: 1, maxLength: 20 }), price, remainder, (parts, rate, before) => {
        let cost = 0n;
        let left = before;
        for (const part of parts) {
          const counted = accrue(left, part, rate);
          cost += counted.cost;
          left = counted.remainder;
        }
        const whole = parts.reduce((sum, part) => sum + part, 0n);
        expect({ cost, remainder: left }).toEqual(accrue(before, whole, rate));
      }),
      { numRuns: RUNS },
    );
  });

  test("the bill is never more than time × price, nor a micro-USDC less, and its remainder is under one", () => {
    fc.assert(
      fc.property(elapsed, price, (ns, rate) => {
        const { cost, remainder: left } = accrue(0n, ns, rate);
        expect(cost * MICRO + left).toBe(ns * rate);
        expect(left >= 0n && left < MICRO && cost >= 0n).toBe(true);
      }),
      { numRuns: RUNS },
    );
  });
});

describe("the time until an amount", () => {
  test("is exact for one instance, and unknown if nothing runs or nothing is charged", () => {
    expect(nsUntil(30_000n, [0n], 30_000n)).toBe(MICRO);
    expect(nsUntil(30_000n, [], 30_000n)).toBeNull();
    expect(nsUntil(30_000n, [0n], 0n)).toBeNull();
  });

  test("is when it is certainly reached, and the time of one micro-USDC earlier it is not", () => {
    const costAt = (ns: bigint, remainders: bigint[], rate: bigint) =>
      remainders.reduce((sum, left) => sum + accrue(left, ns, rate).cost, 0n);
    fc.assert(
      fc.property(
        fc.bigInt({ min: 1n, max: 10_000_000n }),
        fc.array(remainder, { minLength: 1, maxLength: 12 }),
        fc.bigInt({ min: 1n, max: 10_000_000_000n }),
        (amount, remainders, rate) => {
          const ns = nsUntil(amount, remainders, rate) ?? 0n;
          expect(costAt(ns, remainders, rate) >= amount).toBe(true);
          const earlier = ns - MICRO / rate - 1n;
          if (earlier >= 0n) expect(costAt(earlier, remainders, rate) < amount).toBe(true);
        },
      ),
      { numRuns: RUNS },
    );
  });
});

test("hours, days and months are those of UTC, and end where the next begins", () => {
  const last = Date.UTC(2026, 11, 31, 23, 59, 59, 999);
  expect([monthOf(last), dayOf(last), monthOf(last + 1), dayOf(last + 1)]).toEqual([
    "2026-12",
    "2026-12-31",
    "2027-01",
    "2027-01-01",
  ]);
  expect([hourOf(last + 1) - hourOf(last), msToNextHour(last), msToNextHour(last + 1)]).toEqual([1, 1, 3_600_000]);
  expect(nextMonthAt(last)).toBe(last + 1);
  expect(nextMonthAt(Date.UTC(2028, 1, 29, 12))).toBe(Date.UTC(2028, 2, 1));
});
