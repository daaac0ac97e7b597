import { expect, test } from "bun:test";
import fc from "fast-check";
import { loadScript } from "./load-script.ts";

const calculate = await loadScript("calculator/calculate.js");
const convert = await loadScript("calculator/convert.js");
const result = (expression: string) => calculate({ expression }).result;

test.each([
  ["0.1 + 0.2", "0.3"],
  ["2 + 3 * 4", "14"],
  ["(2 + 3) * 4", "20"],
  ["10 - 4 - 3", "3"],
  ["100 / 10 / 2", "5"],
  ["2 ^ 3 ^ 2", "512"],
  ["2 ** 10", "1024"],
  ["-2 ^ 2", "-4"],
  ["(-2) ^ 2", "4"],
  ["2 ^ -2", "0.25"],
  ["2 * -3", "-6"],
  ["--3", "3"],
  ["15% of 80", "12"],
  ["80 * 120%", "96"],
  ["50% ^ 2", "0.25"],
  ["5!", "120"],
  ["3! ^ 2", "36"],
  ["-3!", "-6"],
  ["6 ÷ 3 × 2 − 1", "3"],
  [".5 + 1.", "1.5"],
  ["1e3 + 2.5E-1", "1000.25"],
  ["99999999999999999999 * 3", "299999999999999999997"],
  ["19.99 * 3", "59.97"],
  ["sqrt(9/16)", "0.75"],
  ["4 ^ 0.5", "2"],
  ["round(2.345, 2)", "2.35"],
  ["round(-2.5)", "-3"],
  ["round(1250, -2)", "1300"],
  ["floor(-1.5) + ceil(-1.5)", "-3"],
  ["mod(-7, 3)", "2"],
  ["gcd(12, 18) + lcm(4, 6)", "18"],
  ["max(1, 3, 2) - min(4, 2)", "1"],
  ["sum(0.1, 0.2, 0.3)", "0.6"],
  ["average(1, 2, 6)", "3"],
  ["abs(-1/4)", "0.25"],
  ["0 ^ 0", "1"],
  ["(-1) ^ 99999", "-1"],
  ["1/3 + 2/3", "1"],
])("%s is exactly %s", (expression, expected) => {
  expect(calculate({ expression })).toEqual({ result: expected, exact: true });
});

test.each([
  ["1/3", { result: "0.333333333333333333333333333333", exact: false, fraction: "1/3" }],
  ["-2/3", { result: "-0.666666666666666666666666666667", exact: false, fraction: "-2/3" }],
  ["sqrt(2)", { result: "1.41421356237309504880168872421", exact: false }],
  ["pi", { result: "3.14159265358979323846264338328", exact: false }],
  ["sin(1)", { result: "0.841470984807897", exact: false }],
  ["ln(exp(1))", { result: "1", exact: false }],
  ["log(1000)", { result: "3", exact: false }],
  ["2 ^ 0.3", { result: "1.23114441334492", exact: false }],
  ["1/7 * 1e-40", { result: "1.42857142857142857142857142857e-41", exact: false }],
])("%s is told as rounded", (expression, expected) => {
  expect(calculate({ expression })).toEqual(expected);
});

test.each([
  ["1/0", "division by zero"],
  ["1 / (0.1 + 0.2 - 0.3)", "division by zero"],
  ["0 ^ -1", "division by zero"],
  ["mod(5, 0)", "division by zero"],
  ["sqrt(-1)", "a negative number has no square root"],
  ["(-8) ^ (1/3)", "a negative number has no power that is not whole"],
  ["ln(0)", "not a finite number"],
  ["tan(1", 'expected ")" at the end'],
  ["2 3", 'expected an operator before "3"; write 2 * 3, not 2 3'],
  ["1,000", "write 1000, not 1,000"],
  ["2 +", "expected a number at the end"],
  ["", "expected a number at the end"],
  ["* 2", 'expected a number before "*"'],
  ["2 $ 3", 'cannot read "$ 3"'],
  ["avg(1)", 'there is no "avg"; there are: pi, e, abs'],
  ["constructor(1)", 'there is no "constructor"'],
  ["round()", 'expected a number before ")"'],
  ["sqrt(1, 2)", "sqrt: expected 1 values, got 2"],
  ["2.5!", "a factorial needs a whole number"],
  ["gcd(1.5, 2)", "need whole numbers"],
  ["round(1, 0.5)", "round: expected whole places"],
])("%s is refused: %s", (expression, message) => {
  expect(() => calculate({ expression })).toThrow(message);
});

test.each([
  ["tower of powers", "9 ^ 9 ^ 9"],
  ["large power", "10 ^ 2001"],
  ["power of a number near one", "1.0001 ^ 9999"],
  ["small power", "0.5 ^ 99999999"],
  ["large factorial", "801!"],
  ["large exponent", "1e99999"],
  ["product", "10 ^ 1999 * 10"],
  ["product of factorials", Array.from({ length: 60 }, (_, at) => `${at}!`).join("*")],
])("a %s is refused before it takes long", (_, expression) => {
  expect(() => calculate({ expression })).toThrow("the numbers get longer than 2000 digits");
});

test("long and deep expressions are refused", () => {
  expect(() => result("1+".repeat(1_000) + 1)).toThrow("at most 2000 characters");
  expect(result(`${"(".repeat(100)}1${")".repeat(100)}`)).toBe("1");
  expect(() => result(`${"(".repeat(101)}1${")".repeat(101)}`)).toThrow("at most 100 levels");
  expect(() => result(`${"-".repeat(200)}1`)).toThrow("at most 100 levels");
});

test("the largest that is allowed is calculated", () => {
  expect(result("10 ^ 1999")).toBe(`1${"0".repeat(1_999)}`);
  expect(result(`1${"+1".repeat(999)}`)).toBe("1000");
  expect(result("800!").length).toBe(1_977);
});

test.each([
  [undefined],
  [null],
  [{}],
  [{ expression: {} }],
  [{ expression: "1", digits: 501 }],
  [{ expression: "1", digits: 0.5 }],
])("the input %p is refused with what is expected", (input) => {
  expect(() => calculate(input ?? null)).toThrow("expected");
});

/** A number as text and as an integer of a given scale. */
const decimal = fc
  .tuple(fc.bigInt({ min: -(10n ** 25n), max: 10n ** 25n }), fc.integer({ min: 0, max: 12 }))
  .map(([whole, places]) => {
    const digits = (whole < 0n ? -whole : whole).toString().padStart(places + 1, "0");
    const text = `${digits.slice(0, digits.length - places)}${places > 0 ? `.${digits.slice(-places)}` : ""}`;
    return { text: whole < 0n ? `(-${text})` : text, scaled: whole * 10n ** BigInt(12 - places) };
  });

/** The value of a result in units of 10^-places. */
function scaled(text: string, places: number): bigint {
  const [, sign, before = "", after = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  return BigInt(before + after.padEnd(places, "0")) * (sign === "-" ? -1n : 1n);
}

test("sums, differences and products of decimal numbers have every digit right", () => {
  fc.assert(
    fc.property(decimal, decimal, (a, b) => {
      expect(scaled(result(`${a.text} + ${b.text}`), 12)).toBe(a.scaled + b.scaled);
      expect(scaled(result(`${a.text} - ${b.text}`), 12)).toBe(a.scaled - b.scaled);
      expect(scaled(result(`${a.text} * ${b.text}`), 24)).toBe(a.scaled * b.scaled);
    }),
    { numRuns: 300 },
  );
});

test("a quotient is right to half of its last digit, and multiplied back gives the number", () => {
  const notZero = decimal.filter(({ scaled }) => scaled !== 0n);
  fc.assert(
    fc.property(decimal, notZero, fc.integer({ min: 1, max: 60 }), (a, b, digits) => {
      expect(result(`${a.text} / ${b.text} * ${b.text} - ${a.text}`)).toBe("0");
      const told = calculate({ expression: `${a.text} / ${b.text}`, digits });
      const error = result(`abs(${told.result.replace(/^-/, "0-")} - ${a.text} / ${b.text}) * 2`);
      if (told.exact) return expect(error).toBe("0");
      const kept = told.result.replace(/[-.]|e.*/g, "").replace(/^0+|0+$/g, "");
      expect(kept.length).toBeLessThanOrEqual(digits);
      // Half a unit of the last digit, relative to the number: at most 5 in the digit after it.
      const bound = result(`abs(${a.text} / ${b.text}) * 10 ^ ${1 - digits} - ${error}`);
      expect(bound.startsWith("-")).toBe(false);
    }),
    { numRuns: 200 },
  );
});

type Tree = number | { sign: "+" | "-" | "*" | "^"; left: Tree; right: Tree };
const STRENGTH = { "+": 1, "-": 1, "*": 2, "^": 3 };

const meantBy = (tree: Tree): bigint => {
  if (typeof tree === "number") return BigInt(tree);
  const [left, right] = [meantBy(tree.left), meantBy(tree.right)];
  return { "+": () => left + right, "-": () => left - right, "*": () => left * right, "^": () => left ** right }[
    tree.sign
  ]();
};

/** With no more parentheses than the rules of precedence need. */
const written = (tree: Tree, least = 0): string => {
  if (typeof tree === "number") return String(tree);
  const own = STRENGTH[tree.sign];
  const isRight = tree.sign === "^";
  const text = `${written(tree.left, isRight ? own + 1 : own)}${tree.sign}${written(tree.right, isRight ? own : own + 1)}`;
  return own < least ? `(${text})` : text;
};

const { tree } = fc.letrec<{ tree: Tree; node: Tree; leaf: Tree; power: Tree }>((tie) => ({
  tree: fc.oneof({ depthSize: "small", withCrossShrink: true }, tie("leaf"), tie("node"), tie("power")),
  leaf: fc.integer({ min: 0, max: 99 }),
  power: fc.record({ sign: fc.constant("^" as const), left: tie("leaf"), right: fc.integer({ min: 0, max: 4 }) }),
  node: fc.record({ sign: fc.constantFrom("+", "-", "*"), left: tie("tree"), right: tie("tree") }),
}));

test("precedence is that of mathematics, whatever the expression", () => {
  fc.assert(
    fc.property(tree, (tree) => {
      expect(result(written(tree))).toBe(String(meantBy(tree)));
    }),
    { numRuns: 500 },
  );
});

test("any text is calculated or refused with an error that is meant for readers", () => {
  const piece = fc.constantFrom(..."0 1 9 . , + - * / ^ % ! ( ) e pi sqrt round 1e9 1e-9 mod of".split(" "));
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ maxLength: 100 }),
        fc.array(piece, { maxLength: 30 }).map((all) => all.join(" ")),
      ),
      (text) => {
        try {
          expect(typeof result(text)).toBe("string");
        } catch (error) {
          expect((error as Error).constructor).toBe(Error);
        }
      },
    ),
    { numRuns: 2_000 },
  );
});

test.each([
  ["26.2", "mi", "km", "42.1648128"],
  ["98.6", "°F", "C", "37"],
  ["-40", "celsius", "Fahrenheit", "-40"],
  ["0", "K", "degrees Celsius", "-273.15"],
  ["1", "Feet", "inches", "12"],
  ["6", "ft", "m", "1.8288"],
  ["72", "kph", "m/s", "20"],
  ["1", "nautical miles", "km", "1.852"],
  ["3", "cups", "ml", "709.7647095"],
  ["2", "gal-uk", "L", "9.09218"],
  ["1", "lb", "g", "453.59237"],
  ["1", "acre", "m²", "4046.8564224"],
  ["1", "GiB", "MB", "1073.741824"],
  ["8", "Mb", "MB", "1"],
  ["1", "kWh", "MJ", "3.6"],
  ["1", "atm", "hPa", "1013.25"],
  ["90", "min", "hours", "1.5"],
  ["0.5", "turn", "deg", "180"],
  ["1e3", "m", "km", "1"],
])("%s %s is exactly %s: %s", (value, from, to, expected) => {
  expect(convert({ value, from, to })).toMatchObject({ result: expected, exact: true });
});

test.each([
  ["100", "km/h", "mph", "62.1371192237334"],
  ["1", "psi", "kPa", "6.89475729316836"],
  ["180", "deg", "rad", "3.14159265358979"],
  ["1", "L", "gal", "0.264172052358148"],
  ["1", "hp", "W", "745.699871582270"],
])("%s %s is about %s: %s", (value, from, to, expected) => {
  const told = convert({ value, from, to });
  expect(Number(told.result)).toBeCloseTo(Number(expected), 11);
  expect(told.exact).toBe(false);
});

test.each([
  ["5", "kg", "m", "kg measures mass and m length: they cannot be converted"],
  ["5", "parsec", "m", 'there is no unit "parsec"; see { "list": true }'],
  ["5", "mb", "kB", 'there is no unit "mb"; did you mean MB?'],
  ["5", "mW", "W", 'there is no unit "mW"; did you mean MW?'],
  ["5", "constructor", "m", "there is no unit"],
  ["-500", "C", "K", "there is no temperature below absolute zero"],
  ["1,000", "m", "km", "without thousands marks"],
  ["", "m", "km", "expected a number"],
  ["1e9999", "m", "km", "expected a number"],
])("%s %s to %s is refused: %s", (value, from, to, message) => {
  expect(() => convert({ value, from, to })).toThrow(message);
});

test("a value of more digits than the limit is refused", () => {
  expect(convert({ value: "9".repeat(300), from: "m", to: "mm" }).result).toBe(`${"9".repeat(300)}000`);
  expect(() => convert({ value: "9".repeat(301), from: "m", to: "mm" })).toThrow("expected a number");
});

test("converted there and back, a value is the same, for every pair of units", () => {
  const kinds = Object.values(convert({ list: true })) as string[][];
  const pair = fc
    .constantFrom(...kinds)
    .chain((units) => fc.tuple(fc.constantFrom(...units), fc.constantFrom(...units)));
  fc.assert(
    fc.property(pair, fc.integer({ min: 1_000, max: 1_000_000 }), ([from, to], value) => {
      const there = convert({ value, from, to, digits: 100 });
      const back = convert({ value: there.result, from: to, to: from, digits: 90 });
      if (there.exact && back.exact) expect(back.result).toBe(String(value));
      else expect(Math.abs(Number(back.result) / value - 1)).toBeLessThan(1e-12);
    }),
    { numRuns: 1_000 },
  );
});
