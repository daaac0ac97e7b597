import { expect, test } from "bun:test";
import { sentenceEnds, sentencesOf } from "../../src/lib/words.ts";

test("a sentence ends at a full stop before white space, with its closing quotes", () => {
  const text = 'She said "Go!" Mr. Hill, z.B. J. R. Hill, left... Why?! At 3.5.\n1. Tea\n2. Milk (cold).';
  expect(sentencesOf(text)).toEqual([
    'She said "Go!"',
    "Mr. Hill, z.B. J. R. Hill, left...",
    "Why?!",
    "At 3.5.",
    "1. Tea",
    "2. Milk (cold).",
  ]);
});

test("dots before a small letter are a pause, which ends no sentence", () => {
  expect(sentencesOf("The sea... it is vast… and old. Well... It is.")).toEqual([
    "The sea... it is vast… and old.",
    "Well...",
    "It is.",
  ]);
});

test("a row of full stops is read once, however long it is", () => {
  const long = 4_000_000; // from each of them again, that would take hours
  expect(sentenceEnds(`${"!".repeat(long)}x`)).toEqual([]);
  expect(sentenceEnds(`${"!".repeat(long)} x`)).toEqual([long]);
});
