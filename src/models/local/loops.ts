/** Finds where a small model goes round in circles, or lists without end. */
import { sentencesOf, wordsOf } from "../../lib/words.ts";

/** A text that goes round in circles repeats this many words in a row. */
const LOOP_WORDS = 6;
/** A sentence with fewer words may be repeated without being an echo or a loop: "Hello!", "Of course." */
export const TELLING_WORDS = 3;

export const isTelling = (words: readonly string[]): boolean => words.length >= TELLING_WORDS;

/**
 * A model that lists names in a sentence does not come to its end, also those of files: "css.js". Numbers and letters may be
 * counted up, and amounts listed.
 */
const ENDLESS_LIST = /(?:(?!\s*\d)(?=[^,]{0,40}?\p{L}{3})(?:[^,;:.!?\n]|[.!?](?=\w)){4,40},){12}/u;
const ITEM = /^\s*(?:[-*+]|\d+[.)]) .*/gm;
/** As many items of a list with the same words in a row say nothing new: "80% of my business is fashion". */
const SAME_WORDS = 4;
const SAME_ITEMS = 4;

/** Whether a sentence or a long run of words is repeated, or a list goes on and on. */
export function loops(text: string, words = wordsOf(text)): boolean {
  const sentences = sentencesOf(text)
    .map((sentence) => wordsOf(sentence))
    .filter(isTelling)
    .map((one) => one.join(" "));
  if (new Set(sentences).size < sentences.length) return true;
  if (ENDLESS_LIST.test(text) || hasSameItems(text)) return true;
  const seen = new Set<string>();
  for (let at = 0; at + LOOP_WORDS <= words.length; at++) {
    const run = words.slice(at, at + LOOP_WORDS).join(" ");
    if (seen.has(run)) return true;
    seen.add(run);
  }
  // "very very very very"
  return words.some((word, at) => at >= 3 && [1, 2, 3].every((back) => words[at - back] === word));
}

function hasSameItems(text: string): boolean {
  const times = new Map<string, number>();
  for (const [item] of text.matchAll(ITEM)) {
    const words = wordsOf(item);
    const runs = new Set(words.slice(SAME_WORDS - 1).map((_, at) => words.slice(at, at + SAME_WORDS).join(" ")));
    for (const run of runs) times.set(run, (times.get(run) ?? 0) + 1);
  }
  return [...times.values()].some((many) => many >= SAME_ITEMS);
}
