import { expect, test } from "bun:test";
import { createFairCache } from "../../src/lib/fair-cache.ts";

test("keeps what was set, and drops what is deleted", () => {
  const cache = createFairCache<number>(10, 5);
  cache.set("ada", "a", 1);
  cache.set("ada", "a", 2);
  expect([cache.get("a"), cache.get("b"), cache.size]).toEqual([2, undefined, 1]);
  cache.delete("a");
  cache.delete("b");
  expect([cache.get("a"), cache.size]).toEqual([undefined, 0]);
});

test("evicts the least recently used entry first", () => {
  const cache = createFairCache<number>(3, 3);
  for (const key of ["a", "b", "c"]) cache.set(key, key, 1);
  cache.get("a");
  cache.set("d", "d", 1);
  expect(["a", "b", "c", "d"].filter((key) => cache.get(key) !== undefined)).toEqual(["a", "c", "d"]);
});

test("an owner that fills it evicts only its own entries", () => {
  const cache = createFairCache<number>(1_000, 100);
  for (let at = 0; at < 500; at++) cache.set(`owner ${at}`, `key ${at}`, at);
  for (let at = 0; at < 100_000; at++) cache.set("greedy", `greedy ${at}`, at);
  expect(cache.size).toBe(600);
  for (let at = 0; at < 500; at++) expect(cache.get(`key ${at}`)).toBe(at);
  expect(cache.get("greedy 99900")).toBe(99_900);
  expect(cache.get("greedy 99899")).toBeUndefined();
});

test("never holds more than its bound, however many owners there are", () => {
  const cache = createFairCache<number>(1_000, 100);
  for (let at = 0; at < 50_000; at++) cache.set(`owner ${at % 7_000}`, `key ${at}`, at);
  expect(cache.size).toBe(1_000);
});

test("what is kept weighs no more than it may, all together and of one owner", () => {
  const cache = createFairCache<number>(100, 60, (weight) => weight);
  cache.set("ada", "a", 30);
  cache.set("bob", "b", 30);
  cache.set("ada", "c", 30);
  expect(["a", "b", "c"].map(cache.get)).toEqual([30, 30, 30]);
  cache.set("ada", "d", 40);
  expect(["a", "b", "c", "d"].map(cache.get)).toEqual([undefined, 30, undefined, 40]);
  cache.set("ada", "d", 61);
  expect(["b", "d"].map(cache.get)).toEqual([30, undefined]);
  cache.set("cyd", "e", 60);
  cache.set("dan", "f", 60);
  expect(["b", "e", "f"].map(cache.get)).toEqual([undefined, undefined, 60]);
});
