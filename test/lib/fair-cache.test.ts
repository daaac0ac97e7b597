import { expect, test } from "bun:test";
import { createFairCache } from "../../src/lib/fair-cache.ts";

test("remembers what was set, and forgets what is deleted", () => {
  const cache = createFairCache<number>(10, 5);
  cache.set("ada", "a", 1);
  cache.set("ada", "a", 2);
  expect([cache.get("a"), cache.get("b"), cache.size]).toEqual([2, undefined, 1]);
  cache.delete("a");
  cache.delete("b");
  expect([cache.get("a"), cache.size]).toEqual([undefined, 0]);
});

test("the longest unused goes first", () => {
  const cache = createFairCache<number>(3, 3);
  for (const key of ["a", "b", "c"]) cache.set(key, key, 1);
  cache.get("a");
  cache.set("d", "d", 1);
  expect(["a", "b", "c", "d"].filter((key) => cache.get(key) !== undefined)).toEqual(["a", "c", "d"]);
});

test("who fills it makes room among what is their own: one owner throws nobody else out", () => {
  const cache = createFairCache<number>(1_000, 100);
  for (let at = 0; at < 500; at++) cache.set(`owner ${at}`, `key ${at}`, at);
  for (let at = 0; at < 100_000; at++) cache.set("greedy", `greedy ${at}`, at);
  expect(cache.size).toBe(600);
  for (let at = 0; at < 500; at++) expect(cache.get(`key ${at}`)).toBe(at);
  expect(cache.get("greedy 99900")).toBe(99_900);
  expect(cache.get("greedy 99899")).toBeUndefined();
});

test("holds no more than its bound, whoever comes", () => {
  const cache = createFairCache<number>(1_000, 100);
  for (let at = 0; at < 50_000; at++) cache.set(`owner ${at % 7_000}`, `key ${at}`, at);
  expect(cache.size).toBe(1_000);
});
