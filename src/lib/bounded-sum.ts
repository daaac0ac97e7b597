/** The sum of two counts, or the largest exact one: a sum that reached beyond what SQLite stores could not be written. */
export const boundedSum = (a: number, b: number): number => Math.min(a + b, Number.MAX_SAFE_INTEGER);
