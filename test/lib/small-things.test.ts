import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { base62 } from "../../src/lib/base62.ts";
import { everyStep } from "../../src/lib/every-step.ts";
import { isId, newId } from "../../src/lib/id.ts";
import { balanceCents, cents, formatMoney, parseMoney } from "../../src/lib/money.ts";
import { withoutEnd } from "../../src/lib/without-end.ts";

test("the end of a text is cut off as far as it has these characters alone", () => {
  const slashes = "/".repeat(4_000_000);
  expect(["", "//", "a//", "//a", "a/b;/"].map((text) => withoutEnd(text, "/;"))).toEqual(["", "", "a", "//a", "a/b"]);
  // An expression such as `/\/+$/` takes hours.
  expect(withoutEnd(`${slashes}x${slashes}`, "/")).toBe(`${slashes}x`);
});

test("every step is taken in turn, whatever becomes of those before", async () => {
  const done: unknown[] = [];
  const steps = [
    () => done.push(1),
    () => {
      throw "thrown";
    },
    () => Promise.reject("rejected"),
    async () => void done.push(2),
  ];
  expect(await everyStep(steps, (error) => done.push(error))).toBe(false);
  expect(done).toEqual([1, "thrown", "rejected", 2]);
  expect(await everyStep([], () => {})).toBe(true);
});

describe("money", () => {
  test.each([
    [30_000n, "0.030000"],
    [0n, "0.000000"],
    [1n, "0.000001"],
    [-1n, "-0.000001"],
    [12_345_678n, "12.345678"],
    [-10_000_000n, "-10.000000"],
  ])("%p is shown as %s", (micros, text) => {
    expect(formatMoney(micros)).toBe(text);
  });

  test("reads back what it shows", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 999_999_999_999_999n }), (micros) => {
        expect(parseMoney(formatMoney(micros))).toBe(micros);
      }),
    );
  });

  test("is read with as many decimals as it has", () => {
    expect(["9.999786", "0.000017", "0.005000", "0.000000", "1.004999"].map(cents)).toEqual([
      "10.00",
      "under 0.01",
      "0.01",
      "0.00",
      "1.00",
    ]);
    expect(["9.999786", "0.496100", "0.009999", "0.010000", "0.000000", "10.000000"].map(balanceCents)).toEqual([
      "9.99",
      "0.49",
      "under 0.01",
      "0.01",
      "0.00",
      "10.00",
    ]);
    expect([parseMoney("0.03"), parseMoney("5"), parseMoney("999999999.999999")]).toEqual([
      30_000n,
      5_000_000n,
      999_999_999_999_999n,
    ]);
  });

  test.each(["", ".5", "1.", "-1", "+1", "1,5", "1e3", " 1", "1.0000001", "1234567890", "0x1", "٣"])(
    "%p is refused",
    (text) => {
      expect(parseMoney(text)).toBeNull();
    },
  );
});

describe("an id", () => {
  test("is its prefix and a UUIDv7 without dashes", () => {
    const id = newId("inst");
    expect(id).toMatch(/^inst_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/);
    expect([isId("inst", id), isId("agt", id), isId("inst", `${id}0`), isId("inst", id.toUpperCase())]).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  test("is greater than every one before, however many in a millisecond", () => {
    const ids = Array.from({ length: 20_000 }, () => newId("msg"));
    expect(ids.every((id, at) => at === 0 || id > (ids[at - 1] ?? ""))).toBe(true);
  });

  test("is never any other text", () => {
    fc.assert(fc.property(fc.string(), (text) => !isId("key", text)));
  });
});

test("base 62 has a fixed length and keeps every bit", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      (a, b) => {
        expect(base62(a, 43)).toMatch(/^[0-9A-Za-z]{43}$/);
        expect(base62(a, 43) === base62(b, 43)).toBe(Buffer.compare(a, b) === 0);
      },
    ),
  );
});
