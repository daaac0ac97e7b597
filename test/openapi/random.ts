/** Random choices that depend only on a seed. */
export interface Random {
  /** A whole number from 0 up to, not including, `below`. */
  below(below: number): number;
  /** True with this probability. */
  chance(probability: number): boolean;
  /** Throws for an empty list. */
  pick<T>(from: readonly T[]): T;
}

/** The same choices for the same seed and number. */
export function createRandom(seed: number, number: number): Random {
  // Mulberry32, started at different places for neighbouring numbers.
  let state = Number(Bun.hash.xxHash32(`${seed} ${number}`));
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    below,
    chance: (probability) => next() < probability,
    pick<T>(from: readonly T[]): T {
      if (from.length === 0) throw new Error("nothing to pick from");
      return from[below(from.length)] as T;
    },
  };
}
