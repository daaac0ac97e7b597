import { expect, test } from "bun:test";
import { MAX_ENTRIES } from "../../src/memory/search/entry.ts";
import { fuse } from "../../src/memory/search/rank.ts";
import { isEnglish, trigramsQuery, wordsQuery } from "../../src/memory/search/words.ts";

const ids = (ranked: { id: number }[]) => ranked.map(({ id }) => id);

test("the newest text, which has no vector yet, comes first where its words fit best", () => {
  const nearOf = (id: number) => ({ 2: 0.6, 3: 0.5 })[id] ?? null;
  for (const isEnglish of [true, false]) {
    expect(ids(fuse({ words: [1, 3], trigrams: [1], vectors: [2, 3] }, nearOf, isEnglish))[0]).toBe(1);
  }
});

test("in English, meaning counts for more than a word in common", () => {
  const nearOf = (id: number) => (id === 1 ? 0.25 : 0.55);
  const lists = { words: [1], trigrams: [1], vectors: [2, 1] };
  expect(ids(fuse(lists, nearOf, true))).toEqual([2, 1]);
  expect(ids(fuse(lists, nearOf, false))).toEqual([1, 2]);
  expect(
    ["Where is the key?", "¿Dónde está la llave?", "Wo ist der Schlüssel?", "钥匙在哪里？"].map(isEnglish),
  ).toEqual([true, false, false, false]);
});

test("words that are in every question are not looked for, in scripts without spaces neither", () => {
  expect(wordsQuery("What is the name of my dentist?", 100)).toBe('"dentist" OR "name"');
  expect(wordsQuery("¿Qué día puedo tener reuniones?", 100)).toBe('"reuniones" OR "día"');
  expect(wordsQuery("谁有我们家的另一把钥匙？", 100)).toBe('"另一" OR "钥匙" OR "家"*');
  expect(wordsQuery("夏休みの沖縄旅行はいつですか。", 100)).toBe('"沖縄" OR "縄旅" OR "旅行" OR "夏休" OR "休み"');
  expect(wordsQuery("What is it?", 100)).toBe('"what" OR "is" OR "it"');
});

test("scores are from 0 to 1, also where the query has no vector", () => {
  expect(fuse({ words: [1], trigrams: [1], vectors: [1] }, () => 1, true)[0]?.score).toBeCloseTo(1);
  expect(
    fuse({ words: [1, 2], trigrams: [1], vectors: [] }, null, true).map(({ score }) => score > 0 && score <= 1),
  ).toEqual([true, true]);
});

test("the larger a memory is, the fewer terms of a long query are looked for, those of the longest words first", () => {
  const query = Array.from({ length: 60 }, (_, at) => (7 ** (at % 10) * (at + 1_001)).toString(36)).join(" ");
  const terms = (text: string | null) => text?.split(" OR ") ?? [];
  expect([terms(wordsQuery(query, 100)).length, terms(trigramsQuery(query, 100)).length]).toEqual([32, 96]);
  const [words, trigrams] = [terms(wordsQuery(query, MAX_ENTRIES)), terms(trigramsQuery(query, MAX_ENTRIES))];
  expect([words.length, trigrams.length]).toEqual([12, 30]);
  expect(Math.min(...words.map((word) => word.length))).toBeGreaterThan(7);
});
