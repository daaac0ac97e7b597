import { expect, test } from "bun:test";
import { nearest } from "../../src/lib/nearest.ts";

const NAMES = ["ROOST_PORT", "ROOST_HOST", "ROOST_PRICE_PER_HOUR", "ROOST_MODEL", "ROOST_MODELS", "ROOST_WALLET"];

test.each([
  ["ROOST_PROT", "ROOST_PORT"],
  ["ROOST_HOTS", "ROOST_HOST"],
  ["ROOST_PRT", "ROOST_PORT"],
  ["ROOST_MODELLS", "ROOST_MODELS"],
  ["ROOST_MODLE", "ROOST_MODEL"],
  ["ROOST_PRICE_HOUR", "ROOST_PRICE_PER_HOUR"],
  ["ROOST_MODEL", "ROOST_MODEL"],
])("%s is nearest to %s", (word, meant) => {
  expect(nearest(word, NAMES)).toBe(meant);
});

test("an empty list has no nearest word", () => {
  expect(nearest("x", [])).toBeUndefined();
});
