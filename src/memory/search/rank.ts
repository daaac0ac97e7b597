/**
 * How what was found by words and by meaning becomes one list. Texts are worth their place in the two full-text lists
 * (reciprocal rank, whose constant is small because what is meant is mostly one passage), and the cosine itself:
 * how near a passage is says more than how many are nearer (docs/eval-memory.md).
 */
const K = 2;
const WORDS = 0.5;
const TRIGRAMS = 0.2;
const TEXTS = WORDS + TRIGRAMS;
/**
 * The vectors' model was trained on English: there they find what was meant more often than words do. Anything from 1.5 to 8
 * does as well on the half of the questions that it was chosen with; this is in the middle.
 */
const NEARNESS = 1;
const NEARNESS_IN_ENGLISH = 4;
/** The best score where nothing is known of the meaning: words that fit may be about something else. */
const BY_WORDS_ALONE = 0.45;

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

/** Ids of each list, best first. */
export interface Lists {
  words: readonly number[];
  trigrams: readonly number[];
  vectors: readonly number[];
}

/**
 * Ids, best first, with a score from 0 to 1: what is first in both lists and the same in meaning is worth 1. `nearOf` gives
 * a passage's cosine, or null if it has no vector yet; without it, the query has none, and words are all there is.
 */
export function fuse(
  { words, trigrams, vectors }: Lists,
  nearOf: ((id: number) => number | null) | null,
  isEnglish: boolean,
): { id: number; score: number }[] {
  const texts = new Map<number, number>(vectors.map((id) => [id, 0]));
  for (const [list, weight] of [
    [words, WORDS],
    [trigrams, TRIGRAMS],
  ] as const) {
    for (const [at, id] of list.entries()) texts.set(id, (texts.get(id) ?? 0) + (weight * (K + 1)) / (K + 1 + at));
  }
  const isKnown = nearOf !== null && [...texts.keys()].some((id) => nearOf(id) !== null);
  const weight = isEnglish ? NEARNESS_IN_ENGLISH : NEARNESS;
  const [nearest = -1] = vectors;
  const best = nearOf?.(nearest) ?? 0;
  return [...texts]
    .map(([id, text]) => {
      if (!isKnown) return { id, score: (BY_WORDS_ALONE * text) / TEXTS };
      // Without a vector it is taken to be as near as its words are good, or the newest texts would come last.
      const near = nearOf?.(id) ?? (best * text) / TEXTS;
      return { id, score: (text + weight * Math.max(0, near)) / (TEXTS + weight) };
    })
    .sort((a, b) => b.score - a.score || b.id - a.id);
}
