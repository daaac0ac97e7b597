/**
 * Reciprocal rank fusion: what is first in one list counts more than what is far down in all of them. The constant is small
 * because the lists are short, and what is meant is mostly one passage (docs/eval-memory.md).
 */
const K = 3;

/** What each list counts. */
const WEIGHTS = { words: 1, trigrams: 0.5, vectors: 1 };

/** What ranks this much lower than the best has only words of the query that say little. */
const GOOD = 0.5;

export interface Ranked {
  id: number;
  /** By BM25; lower is better. */
  rank: number;
}

/** The ids of those that rank well, of rows in their order. */
export const goodOf = (rows: readonly Ranked[]): number[] =>
  rows.filter(({ rank }) => rank <= GOOD * (rows[0]?.rank ?? 0)).map(({ id }) => id);

type Lists = Record<keyof typeof WEIGHTS, readonly number[]>;

const MOST = Object.values(WEIGHTS).reduce((sum, weight) => sum + weight, 0);

/** Ids, best first, with a score from 0 to 1: what the first place in every list would be worth is 1. */
export function fuse(lists: Lists): { id: number; score: number }[] {
  const scores = new Map<number, number>();
  for (const [name, weight] of Object.entries(WEIGHTS)) {
    for (const [at, id] of lists[name as keyof Lists].entries()) {
      scores.set(id, (scores.get(id) ?? 0) + (weight * (K + 1)) / (K + 1 + at));
    }
  }
  return [...scores]
    .map(([id, score]) => ({ id, score: score / MOST }))
    .sort((a, b) => b.score - a.score || b.id - a.id);
}
