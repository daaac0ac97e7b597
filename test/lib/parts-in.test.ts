import { expect, test } from "bun:test";
import fc from "fast-check";
import { partsIn } from "../../src/lib/parts-in.ts";

test("a part is found exactly where a search for it alone finds it", () => {
  const text = (maxLength: number) =>
    fc.array(fc.constantFrom("a", "b", "\u{1f426}", "\ud83d", "\n"), { maxLength }).map((pieces) => pieces.join(""));
  fc.assert(
    fc.property(text(40), fc.array(text(6), { maxLength: 12 }), (within, parts) => {
      expect(partsIn(within, parts, -1)).toEqual(parts.map((part) => within.includes(part)));
    }),
    { numRuns: 2_000 },
  );
});

test("many parts that are nearly in a text that repeats itself are looked for together", () => {
  // One after the other, they take hours.
  const parts = Array.from({ length: 1_000 }, (_, at) => `${"b".repeat(at)}a${"b".repeat(1_000 - at)}`);
  expect(partsIn("b".repeat(4_000_000), [...parts, "b".repeat(999)]).indexOf(true)).toBe(1_000);
});
