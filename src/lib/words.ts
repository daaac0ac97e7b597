/** The words and sentences of a text. */

/** In lower case, without punctuation; an apostrophe within a word stays. */
export const wordsOf = (text: string): string[] =>
  text
    .normalize()
    .toLowerCase()
    .replaceAll("’", "'")
    .match(/[\p{L}\p{N}]+(?:'[\p{L}]+)*/gu) ?? [];

/** English words in one form each: `createIssue`, `create_issue` and `creating issues` have the same. */
export const stemsOf = (text: string): string[] =>
  (
    text
      .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1 $2")
      .normalize("NFKC")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  ).map((word) => word.replace(/(?<=\p{L}{3})(?:ings?|ed|es|s|e)$/u, ""));

/** What ends a sentence, with its closing quotes and brackets. */
const STOPS = /[.!?…]+["'”’)*\]»]*/gu;
/** A period after a single capital, a title or a list number does not end one. */
const ENDING = /(?<!\b(?:\p{Lu}|Mr|Mrs|Ms|Dr|St|Nr|z\.B)|(?:^|\n)\s*\d{1,2})[.!?…]|[.!?…]{2}/uy;

/** "The sea... it is vast" is one sentence. */
const PAUSE = /(?:\.{2,}|…)\s+\p{Ll}/uy;

/**
 * The offsets where the text's sentences end, sorted; the end of a line counts too. One expression for all of it would
 * try a long row of full stops again from each of them.
 */
export function sentenceEnds(text: string): number[] {
  const ends: number[] = [];
  for (const { index, 0: stops } of text.matchAll(STOPS)) {
    const end = index + stops.length;
    ENDING.lastIndex = index;
    PAUSE.lastIndex = index;
    if (PAUSE.test(text)) continue;
    if ((end === text.length || /\s/.test(text.charAt(end))) && ENDING.test(text)) ends.push(end);
  }
  for (const { index } of text.matchAll(/(?<=[\p{L}\p{N}*)])\n/gu)) ends.push(index);
  return ends.sort((a, b) => a - b);
}

/** The end of the last whole sentence, or 0. */
export const lastWholeSentence = (text: string): number => sentenceEnds(text).at(-1) ?? 0;

/** Trimmed, none empty; text after the last end is the last one. */
export function sentencesOf(text: string): string[] {
  const ends = [0, ...sentenceEnds(text), text.length];
  return ends
    .slice(1)
    .map((end, at) => text.slice(ends[at], end).trim())
    .filter((sentence) => /[\p{L}\p{N}]/u.test(sentence));
}

/** Whether `part` appears in `whole`, word for word. */
export function containsRun(whole: readonly string[], part: readonly string[]): boolean {
  return part.length > 0 && whole.some((_, at) => part.every((word, offset) => whole[at + offset] === word));
}

/** The length of the longest run of words that is in both. */
export function longestRun(a: readonly string[], b: readonly string[]): number {
  let longest = 0;
  let before = new Uint16Array(b.length + 1);
  for (const word of a) {
    const row = new Uint16Array(b.length + 1);
    for (const [at, other] of b.entries()) {
      if (word !== other) continue;
      const run = (before[at] ?? 0) + 1;
      row[at + 1] = run;
      if (run > longest) longest = run;
    }
    before = row;
  }
  return longest;
}
