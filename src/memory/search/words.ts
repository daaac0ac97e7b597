/** How texts and queries become words of the two full-text indexes. */
import { countLittleWords } from "../../lib/language.ts";

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
  const telling = all.filter((word) => !COMMON.has(word));
  return (telling.length > 0 ? telling : all)
    .sort((a, b) => b.length - a.length)
    .slice(0, mostOf(passages, LEAST_WORDS, MAX_WORDS));
}

/** Whether words of the query show it. */
export function isEnglish(query: string): boolean {
  const { en, de, es } = countLittleWords(query);
  return en > de && en > es;
}

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

/** Words of questions that are in every text, and say nothing of what is looked for. */
const COMMON = new Set(
  (
    "a about after all am an and any are as at be been before but by can could did do does for from had has have he her " +
    "here him his how i if in into is it its just me my no not of on or our out she should so some than that the their " +
    "them then there they this those to under until up us was we were what when where which who whose why will with would you your " +
    "aber als am an auf aus bei bin bist da das dass dein deine dem den der des die doch du ein eine einem einen einer er es für " +
    "hat hatte ich ihr im in ist ja kann kein keine man mein meine meinem meinen meiner mich mir mit nach nicht noch nur oder sein seine " +
    "sich sie sind so um und uns unser unsere vom von vor wann war warum was welche welchem welchen welcher welches wem wen wenn wer wie wir " +
    "wird wo woher wohin zu zum zur " +
    "al como con cual cuál cuales cuando cuándo cuanto cuánto cuántos de del donde dónde el él ella en es esta está este ha hay la las le lo los " +
    "me mi mis muy no nos nuestra nuestro para pero por porque qué que quien quién se ser si sin son su sus te tiene tu tus un una y ya yo " +
    "au aux avec ce ces cette chez combien comment dans des du elle elles est et être eu il ils je l la le les leur leurs lui ma mais mes " +
    "moi mon ne nos notre nous on ont ou où par pas pour pourquoi quand que quel quelle quelles quels qui quoi sa sans ses son sont sur ta " +
    "tes toi ton tu un une vos votre vous d j m n s t c qu"
  ).split(" "),
);
