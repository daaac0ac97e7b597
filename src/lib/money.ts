/** Money is counted in micro-USDC, `bigint`; the API shows it as a decimal string with six digits. */
export const CURRENCY = "USDC";

export type Micros = bigint;

export const lesser = (one: Micros, other: Micros): Micros => (one < other ? one : other);

/** `30000n` → `"0.030000"`. */
export function formatMoney(micros: Micros): string {
  const digits = (micros < 0n ? -micros : micros).toString().padStart(7, "0");
  return `${micros < 0n ? "-" : ""}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

/**
 * `"0.03"` → `30000n`; null unless it is a decimal number with at most nine digits before the point and six after it.
 */
export function parseMoney(text: string): Micros | null {
  const match = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(text);
  return match ? BigInt(match[1] ?? "") * 1_000_000n + BigInt((match[2] ?? "").padEnd(6, "0")) : null;
}

/** `10000000n` and `"10.000000"` → `"10.00"`, `"0.030500"` → `"0.0305"`. */
export const shortMoney = (amount: Micros | string): string =>
  (typeof amount === "string" ? amount : formatMoney(amount)).replace(/(\.\d\d\d*?)0+$/, "$1");

/**
 * To the nearest cent, for people: `"9.999786"` → `"10.00"`, `"0.000017"` → `"under 0.01"`. Not for negative amounts.
 */
export const cents = (amount: string): string => wholeCents(amount, 5_000n);

/** The same for a balance, rounded down: it must not look like enough where a little is missing. */
export const balanceCents = (amount: string): string => wholeCents(amount, 0n);

function wholeCents(amount: string, more: Micros): string {
  const micros = parseMoney(amount) ?? 0n;
  const rounded = (micros + more) / 10_000n;
  if (rounded === 0n && micros > 0n) return "under 0.01";
  const digits = rounded.toString().padStart(3, "0");
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
}
