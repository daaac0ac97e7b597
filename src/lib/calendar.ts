export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** Hours since 1970, UTC. */
export const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS);
/** `2026-11-21`, UTC. */
export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
/** `2026-11`, UTC. */
export const monthOf = (ms: number): string => new Date(ms).toISOString().slice(0, 7);
/** Bounds of a month such as `2026-11` for comparing days as text; `last` need not exist. */
export const daysOf = (month: string): { first: string; last: string } => ({
  first: `${month}-01`,
  last: `${month}-31`,
});
/** Milliseconds since 1970 at which the next month begins. */
export function nextMonthAt(ms: number): number {
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}
export const msToNextHour = (ms: number): number => HOUR_MS - (ms % HOUR_MS);
