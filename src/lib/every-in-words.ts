const UNITS = [
  [86_400, "day"],
  [3_600, "hour"],
  [60, "minute"],
  [1, "second"],
] as const;

/** An interval in the largest unit that has no fractions: `every 30 minutes`, `every hour`. */
export function everyInWords(seconds: number): string {
  const [unit, name] = UNITS.find(([one]) => seconds % one === 0) ?? [1, "second"];
  return seconds === unit ? `every ${name}` : `every ${seconds / unit} ${name}s`;
}
