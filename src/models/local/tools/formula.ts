/**
 * Calculations that a message names with one number: units ("How many miles is 10 km?"), powers and roots. There is
 * nothing to choose, so the model is not asked.
 */
import { ASKED, ASKING, BELOW_ZERO, isShort, NUMBER, numberOf } from "./numbers.ts";

export interface Formula {
  /** As JavaScript. */
  code: string;
  /** As a person writes it. */
  shown: string;
  /** After the result; empty for a plain number. */
  unit: string;
}

interface Unit {
  /** How it is written after a number. */
  label: string;
  /** What people call it, in lower case. */
  names: string;
  /** Of the first unit of its group; in powers of ten or whole numbers wherever the definition has them. */
  factor: number;
}

/** By what they measure. The factors are exact by definition (international yard and pound; US customary volumes). */
const GROUPS: readonly (readonly Unit[])[] = [
  [
    { label: "m", names: "m|met(?:er|re)s?", factor: 1 },
    { label: "mm", names: "mm|millimet(?:er|re)s?", factor: 0.001 },
    { label: "cm", names: "cm|centimet(?:er|re)s?", factor: 0.01 },
    { label: "km", names: "kms?|kilomet(?:er|re)s?", factor: 1000 },
    { label: "inches", names: 'inch(?:es)?|in|["”″]', factor: 0.0254 },
    { label: "feet", names: "ft|foot|feet|['’′]", factor: 0.3048 },
    { label: "yards", names: "yards?|yd", factor: 0.9144 },
    { label: "miles", names: "miles?|mi", factor: 1609.344 },
  ],
  [
    { label: "g", names: "g|grams?|grammes?", factor: 1 },
    { label: "mg", names: "mg|milligrams?", factor: 0.001 },
    { label: "kg", names: "kgs?|kilos?|kilograms?", factor: 1000 },
    { label: "tonnes", names: "tonnes?|metric tons?", factor: 1_000_000 },
    { label: "ounces", names: "oz|ounces?", factor: 28.349523125 },
    { label: "pounds", names: "lbs?|pounds?", factor: 453.59237 },
    { label: "stone", names: "stones?", factor: 6350.29318 },
  ],
  [
    { label: "l", names: "l|lit(?:er|re)s?", factor: 1 },
    { label: "ml", names: "ml|millilit(?:er|re)s?", factor: 0.001 },
    { label: "US gallons", names: "(?:us )?gallons?|gal", factor: 3.785411784 },
    { label: "US pints", names: "(?:us )?pints?", factor: 0.473176473 },
    { label: "US cups", names: "(?:us )?cups?", factor: 0.2365882365 },
    { label: "tablespoons", names: "tablespoons?|tbsp", factor: 0.01478676478125 },
    { label: "teaspoons", names: "teaspoons?|tsp", factor: 0.00492892159375 },
  ],
  [
    { label: "seconds", names: "secs?|seconds?", factor: 1 },
    { label: "minutes", names: "mins?|minutes?", factor: 60 },
    { label: "hours", names: "h|hrs?|hours?", factor: 3600 },
    { label: "days", names: "days?", factor: 86_400 },
    { label: "weeks", names: "weeks?", factor: 604_800 },
  ],
  [
    { label: "bytes", names: "bytes?", factor: 1 },
    { label: "KB", names: "kb|kilobytes?", factor: 1000 },
    { label: "MB", names: "mb|megabytes?", factor: 1_000_000 },
    { label: "GB", names: "gb|gigabytes?", factor: 1_000_000_000 },
    { label: "TB", names: "tb|terabytes?", factor: 1_000_000_000_000 },
    { label: "KiB", names: "kib|kibibytes?", factor: 1024 },
    { label: "MiB", names: "mib|mebibytes?", factor: 1_048_576 },
    { label: "GiB", names: "gib|gibibytes?", factor: 1_073_741_824 },
    { label: "TiB", names: "tib|tebibytes?", factor: 1_099_511_627_776 },
  ],
  [
    { label: "km/h", names: "km/h|kph|kmh|k(?:m|ilomet(?:er|re)s?) (?:per|an) hour", factor: 1000 },
    { label: "mph", names: "mph|miles (?:per|an) hour", factor: 1609.344 },
    { label: "knots", names: "knots?", factor: 1852 },
  ],
];

/** Each as code: from Celsius, and to it. */
const TEMPERATURES = [
  { label: "°C", names: "(?:degrees? |° ?)?(?:celsius|c)", to: (x: string) => x, from: (x: string) => x },
  {
    label: "°F",
    names: "(?:degrees? |° ?)?(?:fahrenheit|f)",
    to: (x: string) => `(${x} - 32) * 5 / 9`,
    from: (x: string) => `${x} * 9 / 5 + 32`,
  },
  {
    label: "K",
    names: "(?:degrees? )?(?:kelvins?|k)",
    to: (x: string) => `${x} - 273.15`,
    from: (x: string) => `${x} + 273.15`,
  },
];

/** A longer message says more than what is to be calculated. */
const MAX_CHARACTERS = 100;
const UNITS = `(?:${[...GROUPS.flat(), ...TEMPERATURES].map(({ names }) => names).join("|")})`;
const FRACTIONS: Readonly<Record<string, string>> = { half: "1/2", quarter: "1/4", "three quarters": "3/4" };
const FRACTION = `(?:\\d{1,2}/\\d{1,2}|(?:an? |one )?(?:half|quarter)|three quarters)`;
/** "10 km", "minus 5 C", "2 and a half hours", "1 1/2 cups", "half a mile", "an hour" */
const measure = (n: number): string =>
  `(?<sign${n}>${BELOW_ZERO})?` +
  `(?:(?<part${n}>${FRACTION})(?: of)?(?: an?)?|(?<whole${n}>${NUMBER})(?:(?: and |(?<=\\d) (?=\\d))(?<rest${n}>${FRACTION}))?|an?)` +
  `(?: |(?<=\\d))(?<unit${n}>${UNITS})`;
/** "5 feet 10 inches", "1 hour and 30 minutes" */
const GIVEN = `${measure(1)}(?:(?:,? and |,? ?)${measure(2)})?`;
/** "10 km in miles": the number, its unit and the wanted one. */
const GIVEN_FIRST = new RegExp(
  `${ASKING}${GIVEN} (?:(?:is|are|equals?) how many|(?:is |are |converted )?(?:to|in|into|as)) (?<to>${UNITS})${ASKED}`,
  "iu",
);
/** "How many miles are there in 10 km?" */
const WANTED_FIRST = new RegExp(
  `${ASKING}how (?:many|much) (?<to>${UNITS}) (?:(?:there )?(?:is|are|makes?|does|do|has|have|equals?)(?: there)?(?: in)?|in) ${GIVEN}(?: have)?${ASKED}`,
  "iu",
);
const CONVERTS = new RegExp(
  `\\bconvert|\\b(?:to|in|into|as|how many) ${UNITS}${ASKED}|\\bhow (?:many|much) ${UNITS} (?:is|are(?! left)|in)\\b`,
  "iu",
);
/** "5 km plus 300 m", "5 feet 10 inches" */
const JOINED = new RegExp(
  `(?<=${NUMBER} ?)(?<one>${UNITS}) ?(?:(?:plus|minus|and|to|from|[-+–−]) ?)?${NUMBER} ?(?<other>${UNITS})(?!\\p{L})`,
  "iu",
);
const ROOT = new RegExp(`${ASKING}(?:the )?(?:square root of |sqrt ?\\(?|√ ?)(?<number>${NUMBER})\\)?${ASKED}`, "iu");
const POWER = new RegExp(
  `${ASKING}(?<number>${NUMBER}) ?(?:\\*\\*|\\^|to the (?:power of )?|raised to (?:the power of )?) ?(?<exponent>\\d{1,3})(?:st|nd|rd|th)?(?: power)?${ASKED}`,
  "iu",
);
const SQUARED = new RegExp(`${ASKING}(?<number>${NUMBER}) (?<word>squared|cubed)${ASKED}`, "iu");

/** Null if the message asks for no such calculation, or for anything besides it. */
export function formulaIn(message: string): Formula | null {
  if (message.length > MAX_CHARACTERS) return null;
  const text = message.replace(/\s+/g, " ");
  const found = (WANTED_FIRST.exec(text) ?? GIVEN_FIRST.exec(text))?.groups;
  const formula = found === undefined ? powerIn(text) : conversion(found);
  return formula !== null && isShort(formula.shown) ? formula : null;
}

/** Whether the numbers are measures of which one would have to be told in the unit of another. */
export function convertsUnits(message: string): boolean {
  const { one, other } = JOINED.exec(message)?.groups ?? {};
  return CONVERTS.test(message) || (one !== undefined && other !== undefined && !isSame(one, other));
}

/** In the singular for a value of 1. */
export const unitFor = (value: number, label: string): string =>
  value === 1 ? (SINGULARS[label] ?? label.replace(/(?<=[a-z]{3})s$/, "")) : label;
const SINGULARS: Readonly<Record<string, string>> = { inches: "inch", feet: "foot" };

function powerIn(text: string): Formula | null {
  const root = ROOT.exec(text)?.groups?.number;
  if (root !== undefined) return { code: `Math.sqrt(${numberOf(root)})`, shown: `√${numberOf(root)}`, unit: "" };
  const { number, exponent = "", word } = (POWER.exec(text) ?? SQUARED.exec(text))?.groups ?? {};
  if (number === undefined) return null;
  const power = word === undefined ? exponent : word.toLowerCase() === "squared" ? "2" : "3";
  // A larger one has a result, but JavaScript cannot write it.
  if (!Number.isFinite(Number(numberOf(number)) ** Number(power))) return null;
  return { code: `${numberOf(number)} ** ${power}`, shown: `${numberOf(number)}^${power}`, unit: "" };
}

type Found = Readonly<Record<string, string | undefined>>;

/** Those of bits, which people write as bytes too. */
const BITS = /^[KMGT]b$/;
const isCalled = (said: string, { names }: { names: string }): boolean =>
  !BITS.test(said) && new RegExp(`^(?:${names})$`, "i").test(said);
const isSame = (one: string, other: string): boolean =>
  GROUPS.flat().some((unit) => isCalled(one, unit) && isCalled(other, unit));

/** What `measure(n)` has found, as code and as it is shown. */
function amountOf(found: Found, n: number): { code: string; shown: string; isOne: boolean } {
  const { [`sign${n}`]: sign, [`whole${n}`]: whole, [`part${n}`]: part, [`rest${n}`]: rest } = found;
  const minus = sign === undefined ? "" : "-";
  const said = (part ?? rest)?.toLowerCase().replace(/^(?:an?|one) /, "");
  const fraction = said === undefined ? "" : (FRACTIONS[said] ?? said);
  if (whole === undefined && fraction !== "") return { code: minus + fraction, shown: minus + fraction, isOne: true };
  const number = whole === undefined ? "1" : numberOf(whole);
  if (fraction === "") return { code: minus + number, shown: minus + number, isOne: number === "1" };
  return { code: `${minus}(${number} + ${fraction})`, shown: `${minus}${number} ${fraction}`, isOne: false };
}

function conversion(found: Found): Formula | null {
  const { unit1: from = "", unit2: smaller, to = "" } = found;
  const [given, wanted] = [from, to].map((said) => TEMPERATURES.find((unit) => isCalled(said, unit)));
  if (given !== undefined && wanted !== undefined) {
    if (smaller !== undefined || given === wanted) return null;
    const { code, shown } = amountOf(found, 1);
    return { code: wanted.from(given.to(code)), shown: `${shown} ${given.label}`, unit: wanted.label };
  }
  for (const group of GROUPS) {
    const [one, other, less] = [from, to, smaller ?? ""].map((said) => group.find((unit) => isCalled(said, unit)));
    if (one === undefined || other === undefined) continue;
    const whole = measured(found, 1, one);
    if (smaller === undefined) {
      return one === other ? null : { code: `${whole.code} / ${other.factor}`, shown: whole.shown, unit: other.label };
    }
    if (less === undefined || less.factor >= one.factor || found.sign1 !== undefined || found.sign2 !== undefined)
      return null;
    const rest = measured(found, 2, less);
    return {
      code: `(${whole.code} + ${rest.code}) / ${other.factor}`,
      shown: `${whole.shown} ${rest.shown}`,
      unit: other.label,
    };
  }
  return null;
}

function measured(found: Found, n: number, { label, factor }: Unit): { code: string; shown: string } {
  const { code, shown, isOne } = amountOf(found, n);
  return { code: `${code} * ${factor}`, shown: `${shown} ${isOne ? unitFor(1, label) : label}` };
}
