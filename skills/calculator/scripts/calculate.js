/**
 * Calculates without rounding.
 *
 * Input: { "expression": "(0.1 + 0.2) * 3" }; "digits" (1 to 500, default 30) is how many significant digits a result
 * gets that has no end.
 * Result: { "result": "0.9", "exact": true }; with "fraction": "1/3" where no decimal number is exact.
 *
 * Every number is a fraction { n, d } of integers, d > 0; `good` is how many digits of it are right, Infinity if all are.
 */

const MAX_LENGTH = 2000;
const MAX_DEPTH = 100;
/** Digits of a number, above or below the line of its fraction. */
const MAX_DIGITS = 2000;
const MAX_FRACTION = 40;

export default function calculate(input) {
  const { expression, digits = 30 } = input ?? {};
  if (!Number.isInteger(digits) || digits < 1 || digits > 500) throw new Error("digits: expected 1 to 500");
  if (typeof expression !== "string" && typeof expression !== "number") {
    throw new Error('expected { "expression": "2 * (3 + 4)" }');
  }
  return show(evaluate(String(expression)), digits);
}

// Fractions

const abs = (n) => (n < 0n ? -n : n);
const digitsOf = (n) => abs(n).toString().length;

const common = (a, b) => {
  while (b > 0n) [a, b] = [b, a % b];
  return a;
};

function fraction(n, d, good) {
  if (d === 0n) throw new Error("division by zero");
  const factor = common(abs(n), abs(d)) * (d < 0n ? -1n : 1n);
  const made = { n: n / factor, d: d / factor, good };
  if (digitsOf(made.n) > MAX_DIGITS || digitsOf(made.d) > MAX_DIGITS) tooLarge();
  return made;
}

const tooLarge = () => {
  throw new Error(`the numbers get longer than ${MAX_DIGITS} digits`);
};

const whole = (n) => ({ n: BigInt(n), d: 1n, good: Number.POSITIVE_INFINITY });
const least = (a, b) => Math.min(a.good, b.good);
const add = (a, b) => fraction(a.n * b.d + b.n * a.d, a.d * b.d, least(a, b));
const negate = (a) => ({ ...a, n: -a.n });
const multiply = (a, b) => fraction(a.n * b.n, a.d * b.d, least(a, b));
const divide = (a, b) => fraction(a.n * b.d, a.d * b.n, least(a, b));
const isLess = (a, b) => a.n * b.d < b.n * a.d;
const floor = (a) => ({ ...whole(a.n / a.d - (a.n < 0n && a.n % a.d !== 0n ? 1n : 0n)), good: a.good });
const isWhole = (a) => a.d === 1n;
function decimal(text) {
  const [, before = "", after = "", exponent = "0"] = /^(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const shift = Number(exponent) - after.length;
  if (Math.abs(shift) > MAX_DIGITS || before.length + after.length > MAX_DIGITS) tooLarge();
  const digits = BigInt(before + after || "0");
  const scale = 10n ** BigInt(Math.abs(shift));
  return shift < 0
    ? fraction(digits, scale, Number.POSITIVE_INFINITY)
    : fraction(digits * scale, 1n, Number.POSITIVE_INFINITY);
}

/** What the language's own functions give has 15 digits that are right. */
function approximate(number) {
  if (!Number.isFinite(number)) throw new Error("the result is not a finite number");
  const made = decimal(Math.abs(number).toPrecision(15));
  return { ...(number < 0 ? negate(made) : made), good: 15 };
}

const asNumber = (a) => Number(rounded(a, 17));

function power(a, b) {
  if (!isWhole(b)) {
    if (a.n < 0n) throw new Error("a negative number has no power that is not whole");
    return b.n === 1n && b.d === 2n ? sqrt(a) : approximate(asNumber(a) ** asNumber(b));
  }
  if (a.n === 0n && b.n < 0n) throw new Error("division by zero");
  if (a.d === 1n && abs(a.n) <= 1n) return b.n === 0n ? whole(1) : b.n % 2n === 0n ? multiply(a, a) : a;
  const times = abs(b.n);
  const longest = BigInt(Math.max(digitsOf(a.n), digitsOf(a.d)));
  if (times * (longest - 1n) > BigInt(MAX_DIGITS) || times > BigInt(4 * MAX_DIGITS)) tooLarge();
  const [n, d] = [a.n ** times, a.d ** times];
  return b.n < 0n ? fraction(d, n, a.good) : fraction(n, d, a.good);
}

/** The largest whole number whose square is at most n. */
function root(n) {
  if (n < 2n) return n;
  let guess = 10n ** BigInt(Math.ceil(n.toString().length / 2));
  for (;;) {
    const next = (guess + n / guess) / 2n;
    if (next >= guess) return guess;
    guess = next;
  }
}

function sqrt(a) {
  if (a.n < 0n) throw new Error("a negative number has no square root");
  const [n, d] = [root(a.n), root(a.d)];
  if (n * n === a.n && d * d === a.d) return fraction(n, d, a.good);
  const places = 60n + BigInt(Math.max(0, digitsOf(a.d) - digitsOf(a.n)));
  const scale = 10n ** places;
  return fraction(root((a.n * scale * scale) / a.d), scale, Math.min(a.good, 50));
}

/** Half away from zero. */
function round(a, places) {
  if (!isWhole(places) || abs(places.n) > 500n) throw new Error("round: expected whole places, at most 500");
  const scale = power(whole(10), places);
  const scaled = multiply({ ...a, n: abs(a.n) }, scale);
  const result = divide(floor(add(scaled, fraction(1n, 2n, scaled.good))), scale);
  return a.n < 0n ? negate(result) : result;
}

function factorial(a) {
  if (!isWhole(a) || a.n < 0n) throw new Error("a factorial needs a whole number that is not negative");
  if (a.n > 800n) tooLarge();
  let product = 1n;
  for (let factor = 2n; factor <= a.n; factor++) product *= factor;
  return whole(product);
}

function divisor(a, b) {
  if (!isWhole(a) || !isWhole(b)) throw new Error("gcd and lcm need whole numbers");
  return whole(common(abs(a.n), abs(b.n)));
}

const CONSTANTS = {
  pi: { ...decimal("3.14159265358979323846264338327950288419716939937510582097494"), good: 50 },
  e: { ...decimal("2.71828182845904523536028747135266249775724709369995957496697"), good: 50 },
};

const byNumber = (compute) => ({ from: 1, to: 1, run: (a) => approximate(compute(asNumber(a))) });
const LANGUAGE = ["exp", "sin", "cos", "tan", "asin", "acos", "atan"];
const FUNCTIONS = {
  abs: { from: 1, to: 1, run: (a) => ({ ...a, n: abs(a.n) }) },
  sqrt: { from: 1, to: 1, run: sqrt },
  round: { from: 1, to: 2, run: (a, places = whole(0)) => round(a, places) },
  floor: { from: 1, to: 1, run: floor },
  ceil: { from: 1, to: 1, run: (a) => negate(floor(negate(a))) },
  mod: { from: 2, to: 2, run: (a, b) => add(a, negate(multiply(b, floor(divide(a, b))))) },
  gcd: { from: 2, to: 2, run: divisor },
  lcm: { from: 2, to: 2, run: (a, b) => (a.n * b.n === 0n ? whole(0) : whole(abs(a.n * b.n) / divisor(a, b).n)) },
  min: { from: 1, to: 1000, run: (...all) => all.reduce((a, b) => (isLess(b, a) ? b : a)) },
  max: { from: 1, to: 1000, run: (...all) => all.reduce((a, b) => (isLess(a, b) ? b : a)) },
  sum: { from: 1, to: 1000, run: (...all) => all.reduce(add) },
  average: { from: 1, to: 1000, run: (...all) => divide(all.reduce(add), whole(all.length)) },
  ln: byNumber(Math.log),
  log: byNumber(Math.log10),
  ...Object.fromEntries(LANGUAGE.map((name) => [name, byNumber(Math[name])])),
};

const TOKEN = /\s*(?:((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|([A-Za-z]+[0-9]*)|(\*\*|[-+*/^%!(),×÷·−]))/y;
const SAME = new Map(["×*", "·*", "÷/", "−-"].map(([written, meant]) => [written, meant]))
  .set("**", "^")
  .set("of", "*");

function tokens(text) {
  const found = [];
  TOKEN.lastIndex = 0;
  while (text.slice(TOKEN.lastIndex).trim() !== "") {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (!match) throw new Error(`cannot read "${text.slice(at).trim().slice(0, 20)}"`);
    const [, number, word, sign] = match;
    const name = word ?? sign;
    found.push(number === undefined ? { sign: SAME.get(name) ?? name } : { number });
  }
  return found;
}

/** Of low to high: + and -, then * and /, then a sign before, then ^ (from the right), then % and ! behind. */
function evaluate(text) {
  if (text.length > MAX_LENGTH) throw new Error(`expected an expression of at most ${MAX_LENGTH} characters`);
  const list = tokens(text);
  let at = 0;
  let depth = 0;
  const next = () => list[at]?.sign;
  const takes = (sign) => next() === sign && ++at > 0;
  const expect = (sign) => {
    if (!takes(sign)) throw new Error(`expected "${sign}" ${place()}`);
  };
  const closed = (value) => {
    expect(")");
    return value;
  };
  const place = () => {
    const token = list[at];
    return token ? `before "${token.number ?? token.sign}"` : "at the end";
  };
  const within = (read) => {
    if (depth++ === MAX_DEPTH) throw new Error(`expected at most ${MAX_DEPTH} levels of parentheses and signs`);
    const value = read();
    depth--;
    return value;
  };

  function sum() {
    let value = product();
    for (;;) {
      if (takes("+")) value = add(value, product());
      else if (takes("-")) value = add(value, negate(product()));
      else return value;
    }
  }
  function product() {
    let value = signed();
    for (;;) {
      if (takes("*")) value = multiply(value, signed());
      else if (takes("/")) value = divide(value, signed());
      else return value;
    }
  }
  function signed() {
    if (takes("-")) return negate(within(signed));
    if (takes("+")) return within(signed);
    const base = behind();
    return takes("^") ? power(base, within(signed)) : base;
  }
  function behind() {
    let value = single();
    for (;;) {
      if (takes("%")) value = divide(value, whole(100));
      else if (takes("!")) value = factorial(value);
      else return value;
    }
  }
  function single() {
    if (list[at]?.number !== undefined) return decimal(list[at++].number);
    if (takes("(")) return closed(within(sum));
    if (!/^[A-Za-z]/.test(next() ?? "")) throw new Error(`expected a number ${place()}`);
    return named(list[at++].sign);
  }
  function named(name) {
    if (Object.hasOwn(CONSTANTS, name)) return CONSTANTS[name];
    if (!Object.hasOwn(FUNCTIONS, name)) {
      throw new Error(`there is no "${name}"; there are: pi, e, ${Object.keys(FUNCTIONS).join(", ")}`);
    }
    const { from, to, run } = FUNCTIONS[name];
    expect("(");
    const values = [within(sum)];
    while (takes(",")) values.push(within(sum));
    closed(values);
    if (values.length < from || values.length > to) {
      throw new Error(`${name}: expected ${from === to ? from : `${from} to ${to}`} values, got ${values.length}`);
    }
    return run(...values);
  }

  const value = sum();
  if (at < list.length) {
    const hint = next() === "," ? "; write 1000, not 1,000" : "; write 2 * 3, not 2 3";
    throw new Error(`expected an operator ${place()}${hint}`);
  }
  return value;
}

function show(value, digits) {
  let rest = value.d;
  for (const prime of [2n, 5n]) while (rest % prime === 0n) rest /= prime;
  const isExact = value.good === Number.POSITIVE_INFINITY;
  // A power of two below the line needs 3.3 times its digits.
  if (rest === 1n && isExact) return { result: rounded(value, digitsOf(value.n) + 4 * digitsOf(value.d)), exact: true };
  const result = { result: rounded(value, Math.min(digits, value.good)), exact: false };
  const text = `${value.n}/${value.d}`;
  return isExact && text.length <= MAX_FRACTION ? { ...result, fraction: text } : result;
}

/** So many significant digits, half away from zero. */
function rounded({ n, d }, digits) {
  const size = abs(n);
  if (size === 0n) return "0";
  const shifted = (by) => (by >= 0 ? [size * 10n ** BigInt(by), d] : [size, d * 10n ** BigInt(-by)]);
  let exponent = digitsOf(size) - digitsOf(d);
  const [top, bottom] = shifted(-exponent);
  if (top < bottom) exponent--;
  const [above, below] = shifted(digits - 1 - exponent);
  let kept = ((2n * above + below) / (2n * below)).toString();
  if (kept.length > digits) exponent++;
  kept = kept.slice(0, digits);
  if (exponent >= 30 + digits || exponent < -30) {
    const mantissa = point(n < 0n, kept, kept.length - 1);
    return `${mantissa}e${exponent}`;
  }
  const places = digits - 1 - exponent;
  return places >= 0 ? point(n < 0n, kept, places) : `${n < 0n ? "-" : ""}${kept}${"0".repeat(-places)}`;
}

function point(isNegative, digits, places) {
  const padded = digits.padStart(places + 1, "0");
  const behind = padded.slice(padded.length - places).replace(/0+$/, "");
  const before = padded.slice(0, padded.length - places);
  return `${isNegative ? "-" : ""}${before}${places > 0 && behind !== "" ? `.${behind}` : ""}`;
}
