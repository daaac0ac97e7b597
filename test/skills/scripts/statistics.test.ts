import { expect, test } from "bun:test";
import fc from "fast-check";
import { loadScript } from "./load-script.ts";

const statistics = await loadScript("text-tools/statistics.js");

test("a text is counted", () => {
  const text = "The owl can't sleep. Owls hunt at night!\n\nIs 3.14 a well-known number? \u201CYes.\u201D\n";
  expect(statistics({ text })).toEqual({
    characters: 78,
    charactersWithoutSpaces: 63,
    words: 14,
    distinctWords: 14,
    sentences: 4,
    paragraphs: 2,
    lines: 3,
    meanWordLength: 4.1,
    meanSentenceLength: 3.5,
    readingMinutes: 0.1,
    speakingMinutes: 0.1,
    longestWords: ["well-known", "number", "can't", "night", "sleep"],
    frequentWords: "3.14 can't hunt night number owl owls sleep well-known yes"
      .split(" ")
      .map((word) => ({ word, times: 1 })),
  });
});

test.each([
  [
    "nothing",
    "",
    { characters: 0, words: 0, sentences: 0, paragraphs: 0, lines: 0, meanWordLength: 0, frequentWords: [] },
  ],
  ["blanks only", " \n \n", { words: 0, sentences: 0, paragraphs: 0, lines: 2 }],
  ["emoji, each one character", "👍🏽 ok", { characters: 5, words: 1 }],
  ["Chinese, each character a word", "你好。再见！", { words: 4, sentences: 2 }],
  ["Japanese of two scripts", "ねこ カメラ", { words: 5 }],
  ["accents, composed or not", "Éte\u0301 e\u0301té", { words: 2 }],
  ["German and Greek", "Größe, ύψος", { words: 2, longestWords: ["größe", "ύψος"] }],
  ["an ellipsis and several marks", "What?! Well... yes.", { sentences: 3 }],
  ["an abbreviation within a word", "e.g. U.S.A. wins", { words: 3 }],
  ["line ends of Windows", "a\r\nb\r\n\r\nc", { lines: 4, paragraphs: 2, characters: 6 }],
])("%s", (_, text, expected) => {
  expect(statistics({ text })).toMatchObject(expected);
});

test("the most frequent words come first, the common ones only if asked for", () => {
  const text = "the cat and the dog and the owl; a cat";
  expect(statistics({ text, words: 2 }).frequentWords).toEqual([
    { word: "cat", times: 2 },
    { word: "dog", times: 1 },
  ]);
  expect(statistics({ text, words: 2, ignoreCommon: false }).frequentWords).toEqual([
    { word: "the", times: 3 },
    { word: "and", times: 2 },
  ]);
});

test("texts put together have the words of both", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b) => {
      const words = (text: string) => statistics({ text }).words;
      expect(words(`${a}\n\n${b}`)).toBe(words(a) + words(b));
    }),
  );
});

test("text that is made to be slow is counted at once, and more than the limit refused", () => {
  expect(statistics({ text: `${".".repeat(1_900_000)}x` }).words).toBe(1);
  expect(statistics({ text: `${"a'".repeat(900_000)}` }).words).toBe(1);
  expect(statistics({ text: "\n ".repeat(900_000) }).paragraphs).toBe(0);
  expect(() => statistics({ text: "x".repeat(2_000_001) })).toThrow("at most 2000000 characters");
  expect(() => statistics({ text: "x", words: 101 })).toThrow("words: expected 0 to 100");
  expect(() => statistics({})).toThrow('expected { "text"');
});
