export { balanceCents, cents } from "../../lib/money.ts";

/** An amount as the API writes it, in micro-USDC. */
const microsOf = (amount: string): bigint => {
  const [whole = "0", part = ""] = amount.split(".");
  return BigInt(whole) * 1_000_000n + BigInt(part.padEnd(6, "0").slice(0, 6));
};

/** Exact, for prices and payments: `1.003217`, `0.030000` → `0.03`, `10.000000` → `10.00`. */
export const exact = (amount: string): string => amount.replace(/(\.\d\d\d*?)0+$/, "$1");

export const isNothing = (amount: string): boolean => microsOf(amount) === 0n;

export const isLess = (amount: string, other: string): boolean => microsOf(amount) < microsOf(other);
