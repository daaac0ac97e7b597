/** How texts and queries become words of the two full-text indexes. */
import { hasEnglishWords, isQuestionWord, QUESTION_WORDS_IN_RUNS } from "./question-words.ts";

/** Scripts without spaces between words, or with endings on every word. */
const RUNS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\u30fc]+/gu;
const WORDS = /[\p{L}\p{M}\p{N}]+/gu;
/**
 * How much is looked for. What a search takes grows with both the terms of the query and the passages, so in a large index
 * a long query loses some of its terms, those of the shortest words first.
 */
const MAX_WORDS = 32;
const LEAST_WORDS = 12;
const MAX_TRIGRAMS = 96;
const LEAST_TRIGRAMS = 24;
const TRIGRAMS_BY_PASSAGES = 600_000;

const mostOf = (passages: number, least: number, most: number): number =>
  Math.max(least, Math.floor(most * Math.min(1, TRIGRAMS_BY_PASSAGES / MAX_TRIGRAMS / Math.max(1, passages))));

/** Every two neighbouring characters, so that words of two are found, and the last, so that one at the end is. */
function pairs(run: string): string {
  const characters = Array.from(run);
  return characters.map((character, at) => character + (characters[at + 1] ?? "")).join(" ");
}

const folded = (text: string): string => text.normalize("NFKC").toLowerCase();

/** What the index of words is given. */
export const wordsText = (text: string): string => folded(text).replace(RUNS, (run) => ` ${pairs(run)} `);

/** What the index of trigrams is given: each word begins with a space, which marks its beginning. */
export const trigramsText = (text: string): string => ` ${plain(text)} `;

/** Without marks above and below letters, and with one space between words. */
const plain = (text: string): string =>
  (
    folded(text)
      .normalize("NFD")
      .replace(/(?<=\p{Script=Latin})\p{M}+/gu, "")
      .normalize("NFC")
      .match(WORDS) ?? []
  ).join(" ");

/** The words that say what a query is about, the longest first; all of them, if none does. */
function chosen(text: string, passages: number): string[] {
  const all = [...new Set(folded(text).match(WORDS) ?? [])];
  const rest = folded(text).replace(RUNS, (run) => run.replace(QUESTION_WORDS_IN_RUNS, " "));
  const telling = [...new Set(rest.match(WORDS) ?? [])].filter((word) => !isQuestionWord(word));
  return (telling.length > 0 ? telling : all)
    .sort((a, b) => b.length - a.length)
    .slice(0, mostOf(passages, LEAST_WORDS, MAX_WORDS));
}

/** Whether words of the query show it. */
export const isEnglish = (query: string): boolean => hasEnglishWords(folded(query).match(WORDS) ?? []);

/** An FTS5 query for an index of so many passages; null if there is nothing to look for. */
export function wordsQuery(query: string, passages: number): string | null {
  const terms = chosen(query, passages).flatMap((word) => {
    const runs = word.match(RUNS);
    if (runs === null) return [`"${word}"`];
    const parts = runs.flatMap((run) => {
      const characters = Array.from(run);
      // One character is looked for at the beginning of a pair.
      if (characters.length === 1) return [`"${run}"*`];
      return characters.slice(0, -1).map((character, at) => `"${character}${characters[at + 1]}"`);
    });
    const others = word.replace(RUNS, " ").match(WORDS) ?? [];
    return [...parts, ...others.map((other) => `"${other}"`)];
  });
  return terms.length === 0 ? null : [...new Set(terms)].slice(0, 4 * MAX_WORDS).join(" OR ");
}

export function trigramsQuery(query: string, passages: number): string | null {
  const trigrams = chosen(query, passages).flatMap((word) => {
    const characters = Array.from(RUNS.test(word) ? word : ` ${plain(word)}`);
    RUNS.lastIndex = 0;
    return characters.slice(0, -2).map((_, at) => characters.slice(at, at + 3).join(""));
  });
  return trigrams.length === 0
    ? null
    : [...new Set(trigrams)]
        .slice(0, mostOf(passages, LEAST_TRIGRAMS, MAX_TRIGRAMS))
        .map((one) => `"${one}"`)
        .join(" OR ");
}
