import { expect, test } from "bun:test";
import fc from "fast-check";
import { calculationOf, evaluate } from "../../src/models/local/tools/arithmetic.ts";

test.each([
  ["What is 12 times 14?", "12 × 14 = 168."],
  ["What's 15 % of 80?", "15 ÷ 100 × 80 = 12."],
  ["10 / 3", "10 ÷ 3 ≈ 3.33333."],
  ["What is 8 divided by 0?", "8 ÷ 0 has no result."],
  ["How many miles is 10 km?", "10 km ≈ 6.21371 miles."],
  ["Convert 20 C to F", "20 °C = 68 °F."],
  ["What is the square root of 144?", "√144 = 12."],
  ["2 to the power of 10", "2^10 = 1024."],
  ["-5 + 3", "-5 + 3 = -2."],
  ["What is 7 - -2?", "7 − -2 = 9."],
  ["What is 5 feet 10 inches in cm?", "5 feet 10 inches = 177.8 cm."],
  ["1 1/2 cups in ml", "1 1/2 US cups ≈ 354.882 ml."],
  ["minus 5 C in F", "-5 °C = 23 °F."],
  ["How many feet are 12 inches?", "12 inches = 1 foot."],
  ["60 minutes in hours", "60 minutes = 1 hour."],
])("a calculation is worked out where no script may be run: %s", (message, told) => {
  expect(calculationOf(message)).toBe(told);
});

test("what is no calculation is none", () => {
  for (const message of ["Hello!", "I have 2 cats and 3 dogs.", "What is 9/11?"])
    expect(calculationOf(message)).toBeNull();
});

test("the value is JavaScript's own", () => {
  const number = fc.oneof(
    fc.nat(999).map(String),
    fc.tuple(fc.nat(99), fc.nat(99)).map(([a, b]) => `${a}.${b}`),
  );
  const { code } = fc.letrec((tie) => ({
    code: fc.oneof(
      { depthSize: "small" },
      number,
      fc
        .tuple(tie("code"), fc.constantFrom("+", "-", "*", "/"), tie("code"))
        .map(([a, sign, b]) => `${a} ${sign} ${b}`),
      tie("code").map((inner) => `(${inner})`),
      tie("code").map((inner) => `Math.sqrt(${inner})`),
      fc.tuple(number, fc.nat(9)).map(([base, power]) => `${base} ** ${power}`),
    ),
  }));
  fc.assert(
    fc.property(code as fc.Arbitrary<string>, (text) => {
      expect(evaluate(text)).toBe(Number(Function(`return ${text}`)()));
    }),
  );
});
