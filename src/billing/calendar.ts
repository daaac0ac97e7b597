const HOUR_MS = 3_600_000;

/** Hours since 1970, UTC. */
export const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS);
/** `2026-11-21`, UTC. */
export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
/** `2026-11`, UTC. */
export const monthOf = (ms: number): string => new Date(ms).toISOString().slice(0, 7);
export const msToNextHour = (ms: number): number => HOUR_MS - (ms % HOUR_MS);
