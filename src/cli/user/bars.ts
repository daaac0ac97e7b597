import { shortMoney } from "../../lib/money.ts";

const MAX_WIDTH = 40;
const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"] as const;

/** A bar for each amount; the largest fills the chart, which fits the columns. Without `blocks`, bars are made of `#`. */
export function barsOf(
  amounts: ReadonlyMap<string, bigint>,
  blocks: boolean,
  columns = 80,
  show: (amount: bigint) => string = shortMoney,
): { label: string; bar: string; value: string }[] {
  const beside = Math.max(...[...amounts].map(([label, amount]) => `${label}   ${show(amount)}`.length));
  const width = Math.max(1, Math.min(MAX_WIDTH, columns - beside));
  const most = [...amounts.values()].reduce((largest, amount) => (amount > largest ? amount : largest), 1n);
  return [...amounts].map(([label, amount]) => {
    const eighths = Number((amount * BigInt(width * 8)) / most);
    // Any amount at all gets a visible bar.
    const shown = amount > 0n ? Math.max(1, eighths) : 0;
    const bar = blocks
      ? "█".repeat(Math.floor(shown / 8)) + (EIGHTHS[shown % 8] ?? "")
      : "#".repeat(Math.ceil(shown / 8));
    return { label, bar, value: show(amount) };
  });
}
