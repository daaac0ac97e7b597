const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const MAX_MS = 3650 * UNIT_MS.d;

/** What `parseDuration` reads, for errors. */
export const DURATION_FORM = "a number with s, m, h or d, such as 7d, of at most 3650d";

/** `7d` → milliseconds; null if it is not a duration, or none that is above zero. */
export function parseDuration(text: string): number | null {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  return ms > 0 && ms <= MAX_MS ? ms : null;
}
