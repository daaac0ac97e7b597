/** An amount as the API writes it, in micro-USDC. */
const microsOf = (amount: string): bigint => {
  const [whole = "0", part = ""] = amount.split(".");
  return BigInt(whole) * 1_000_000n + BigInt(part.padEnd(6, "0").slice(0, 6));
};

/** Rounded to the nearest cent, for display: `9.999786` → `10.00`, `0.000017` → `under 0.01`. */
export function cents(amount: string): string {
  const micros = microsOf(amount);
  const rounded = (micros + 5_000n) / 10_000n;
  if (rounded === 0n && micros > 0n) return "under 0.01";
  const digits = rounded.toString().padStart(3, "0");
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

/** Exact, for prices and payments: `1.003217`, `0.030000` → `0.03`, `10.000000` → `10.00`. */
export const exact = (amount: string): string => amount.replace(/(\.\d\d\d*?)0+$/, "$1");

export const isNothing = (amount: string): boolean => microsOf(amount) === 0n;

export const isLess = (amount: string, other: string): boolean => microsOf(amount) < microsOf(other);
