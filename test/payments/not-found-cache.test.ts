import { expect, test } from "bun:test";
import { createNotFoundCache } from "../../src/payments/not-found-cache.ts";
import { handClock, SECOND } from "../lib/hand-clock.ts";

test("what was not found is remembered as long as announced, for everybody", () => {
  const clock = handClock();
  const missing = createNotFoundCache<string>(clock);
  missing.note("a", "one", "not there", 2);
  clock.advance(2 * SECOND - 1);
  expect(missing.find("a")).toBe("not there");
  clock.advance(1);
  expect(missing.find("a")).toBeUndefined();
});

test("an account that looks up thousands of transactions evicts only its own", () => {
  const missing = createNotFoundCache<true>(handClock());
  missing.note("mine", "me", true, 12);
  for (let nth = 0; nth < 50_000; nth++) missing.note(`junk ${nth}`, "pest", true, 12);
  expect(missing.find("mine")).toBe(true);
  expect(missing.find("junk 49999")).toBe(true);
  expect(missing.find("junk 49799")).toBeUndefined();
});

test("a thousand accounts that each look up as many as they may are bounded all the same", () => {
  const clock = handClock();
  const missing = createNotFoundCache<true>(clock);
  for (let nth = 0; nth < 20_000; nth++) missing.note(`key ${nth}`, `account ${nth % 1_000}`, true, 12);
  const known = Array.from({ length: 20_000 }, (_, nth) => missing.find(`key ${nth}`)).filter(Boolean).length;
  expect(known).toBe(10_000);
  clock.advance(12 * SECOND);
  expect(missing.find("key 19999")).toBeUndefined();
});
