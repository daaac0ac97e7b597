/**
 * Counts what is in a text.
 *
 * Input: { "text": "…" }; "words": 10 (0 to 100) is how many of the most frequent words are told; "ignoreCommon": false counts
 * common English words among them too.
 * Result: characters, words, sentences, paragraphs, lines, time to read, the longest and the most frequent words. In Chinese and
 * Japanese, which put no spaces between words, each character counts as a word.
 */

const MAX_TEXT = 2_000_000;
/** Words a minute, read silently and aloud. */
const READING = 238;
const SPEAKING = 150;
const COMMON = new Set(
  (
    "a about after all also an and any are as at be because been before but by can could did do for from had has have he her " +
    "his how i if in into is it its just more most my no not of on one only or other our out over she so some such than that " +
    "the their them then there these they this those to up us was we were what when where which who will with would you your"
  ).split(" "),
);
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}][\p{L}\p{M}\p{N}]*(?:['’.-][\p{L}\p{N}][\p{L}\p{M}\p{N}]*)*/gu;

const SENTENCE_END = /[.!?…]["'”’)\]]*(?=\s|$)|[。！？]|\n\s*\n/u;

export default function statistics(input) {
  const { text, words: asked = 10, ignoreCommon = true } = input ?? {};
  if (typeof text !== "string") throw new Error('expected { "text": "…" }');
  if (text.length > MAX_TEXT) throw new Error(`text: expected at most ${MAX_TEXT} characters`);
  if (!Number.isInteger(asked) || asked < 0 || asked > 100) throw new Error("words: expected 0 to 100");
  const source = text.replace(/\r\n?/g, "\n");
  const words = source.match(WORD) ?? [];
  const counts = new Map();
  for (const word of words) {
    const key = word.toLowerCase();
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const characters = lengthOf(source);
  const letters = lengthOf(words.join(""));
  // A row of dots would be searched again from each of them.
  const ends = source.replace(/[.!?…]{2,}/g, ".");
  const sentences = ends.split(SENTENCE_END).filter((part) => /[\p{L}\p{N}]/u.test(part)).length;
  return {
    characters,
    charactersWithoutSpaces: lengthOf(source.replace(/\s+/g, "")),
    words: words.length,
    distinctWords: counts.size,
    sentences,
    paragraphs: source.split(/\n\s*\n/).filter((part) => part.trim() !== "").length,
    lines: source === "" ? 0 : source.replace(/\n$/, "").split("\n").length,
    meanWordLength: words.length === 0 ? 0 : tenth(letters / words.length),
    meanSentenceLength: sentences === 0 ? 0 : tenth(words.length / sentences),
    readingMinutes: tenth(words.length / READING),
    speakingMinutes: tenth(words.length / SPEAKING),
    longestWords: [...counts.keys()]
      .sort((a, b) => b.length - a.length || (a < b ? -1 : 1))
      .slice(0, 5)
      .map((word) => word.slice(0, 100)),
    frequentWords: frequent(counts, asked, ignoreCommon),
  };
}

const tenth = (number) => Math.round(number * 10) / 10;

/** Characters, of which an emoji is two of the language's own units. */
const lengthOf = (text) => text.length - (text.match(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g) ?? []).length;

const frequent = (counts, most, ignoreCommon) =>
  [...counts]
    .filter(([word]) => !ignoreCommon || !COMMON.has(word))
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .slice(0, most)
    .map(([word, times]) => ({ word: word.slice(0, 100), times }));
