/**
 * Whether a number is a whole multiple of a finite one above 0, both as the decimals that they are written as: 1000000.19 is
 * one of 0.01, though neither has exactly these digits as a double.
 */
export function isMultiple(value: number, step: number): boolean {
  // JSON can say 1e400.
  if (!Number.isFinite(value)) return false;
  const [whole, part] = [decimalOf(value), decimalOf(step)];
  const exponent = Math.min(whole.exponent, part.exponent);
  const scaled = (decimal: Decimal) => decimal.digits * 10n ** BigInt(decimal.exponent - exponent);
  return scaled(whole) % scaled(part) === 0n;
}

/** `digits` times ten to the power of `exponent`. */
interface Decimal {
  digits: bigint;
  exponent: number;
}

/** Of a finite number: `-12.5` and `3e-10` are the forms in which JavaScript writes one. */
function decimalOf(number: number): Decimal {
  const [mantissa = "", power = "0"] = String(number).split("e");
  const [before = "", after = ""] = mantissa.split(".");
  return { digits: BigInt(before + after), exponent: Number(power) - after.length };
}
