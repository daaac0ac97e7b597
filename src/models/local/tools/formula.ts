/**
 * Calculations that a message names with one number: units ("How many miles is 10 km?"), powers and roots. There is
 * nothing to choose, so the model is not asked.
 */

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
  /** What people call it. In lower case, but for those whose case tells them apart. */
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
    { label: "inches", names: "inch(?:es)?", factor: 0.0254 },
    { label: "feet", names: "ft|foot|feet", factor: 0.3048 },
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
    { label: "hours", names: "hrs?|hours?", factor: 3600 },
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
    { label: "km/h", names: "km/h|kph|kmh|kilomet(?:er|re)s (?:per|an) hour", factor: 1000 },
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
const UNITS = [...GROUPS.flat(), ...TEMPERATURES].map(({ names }) => names).join("|");
const NUMBER = "-?\\d{1,3}(?:,\\d{3})+(?:\\.\\d+)?|-?\\d{1,9}(?:\\.\\d{1,6})?|an?|one";
const END = "(?: equal(?: to)?)?\\W*$";
/** "10 km in miles": the number, its unit and the wanted one. */
const GIVEN_FIRST = new RegExp(
  `(?:^|[^\\w.,])(?<number>${NUMBER}) ?(?<from>${UNITS}) (?:is |are )?(?:to|in|into|as) (?<to>${UNITS})${END}`,
  "i",
);
/** "How many miles are there in 10 km?" */
const WANTED_FIRST = new RegExp(
  `\\bhow (?:many|much) (?<to>${UNITS}) (?:(?:is|are|makes?|does|do|has|have)(?: there)?(?: in)? |in )(?<number>${NUMBER}) ?(?<from>${UNITS})(?: have)?${END}`,
  "i",
);
const ROOT = /\b(?:square root of|sqrt\(?|√) ?(?<number>\d{1,9}(?:\.\d{1,6})?)\)?\W*$/i;
const POWER =
  /(?:^|\s)(?<number>\d{1,6}(?:\.\d{1,6})?) ?(?:\*\*|\^|to the (?:power of )?|raised to (?:the power of )?)(?: ?)(?<exponent>\d{1,3})(?:st|nd|rd|th)?(?: power)?\W*$/i;
const SQUARED = /(?:^|\s)(?<number>\d{1,9}(?:\.\d{1,6})?) (?<word>squared|cubed)\W*$/i;

/** Null if the message asks for no such calculation, or for more than one. */
export function formulaIn(message: string): Formula | null {
  if (message.length > MAX_CHARACTERS) return null;
  const { number = "", from = "", to = "" } = (WANTED_FIRST.exec(message) ?? GIVEN_FIRST.exec(message))?.groups ?? {};
  if (number !== "") return conversion(plain(number), from, to);
  return powerIn(message);
}

function powerIn(message: string): Formula | null {
  const root = ROOT.exec(message)?.groups?.number;
  if (root !== undefined) return { code: `Math.sqrt(${root})`, shown: `√${root}`, unit: "" };
  const { number, exponent = "", word } = (POWER.exec(message) ?? SQUARED.exec(message))?.groups ?? {};
  if (number === undefined) return null;
  const power = word === undefined ? exponent : word.toLowerCase() === "squared" ? "2" : "3";
  return { code: `${number} ** ${power}`, shown: `${number}^${power}`, unit: "" };
}

const plain = (number: string): string => (/\d/.test(number) ? number.replaceAll(",", "") : "1");

const isCalled = (said: string, { names }: { names: string }): boolean => new RegExp(`^(?:${names})$`, "i").test(said);

function conversion(number: string, from: string, to: string): Formula | null {
  const [given, wanted] = [from, to].map((said) => TEMPERATURES.find((unit) => isCalled(said, unit)));
  if (given !== undefined && wanted !== undefined) {
    return { code: wanted.from(given.to(number)), shown: `${number} ${given.label}`, unit: wanted.label };
  }
  for (const group of GROUPS) {
    const [one, other] = [from, to].map((said) => group.find((unit) => isCalled(said, unit)));
    if (one === undefined || other === undefined || one === other) continue;
    const shown = `${number} ${number === "1" ? one.label.replace(/(?<=[a-z]{3})s$/, "") : one.label}`;
    return { code: `${number} * ${one.factor} / ${other.factor}`, shown, unit: other.label };
  }
  return null;
}
