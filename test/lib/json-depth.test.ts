import { expect, test } from "bun:test";
import fc from "fast-check";
import { isTooComplex, isTooDeep, MAX_JSON_DEPTH } from "../../src/lib/json-depth.ts";

const nested = (depth: number, [open, close]: readonly [string, string] = ["[", "]"]) =>
  open.repeat(depth) + close.repeat(depth);

test("lists and objects may be nested as deep as the limit, and no deeper", () => {
  for (const kind of [
    ["[", "]"],
    ['{"a":[', "]}"],
  ] as const) {
    const levels = MAX_JSON_DEPTH / (kind[0].length > 1 ? 2 : 1);
    expect([isTooDeep(nested(levels, kind)), isTooDeep(nested(levels + 1, kind))]).toEqual([false, true]);
  }
  expect(isTooDeep(`[${"[],".repeat(10_000)}[]]`)).toBe(false);
});

test("escapes are counted in every text, and nothing else is", () => {
  const parts = fc.string({ unit: fc.constantFrom("[", ",", '"', "\\", "\n", "a", "é"), maxLength: 60 });
  fc.assert(
    fc.property(fc.array(parts), (texts) => {
      const json = JSON.stringify(texts);
      const escapes = json.replaceAll(/[^\\]|\\(.)/g, (found) => (found.length > 1 ? "!" : "")).length;
      const isOver = (most: number) => isTooComplex(json, 9, 9, 99_999, most);
      expect([isOver(escapes), escapes > 0 && isOver(escapes - 1)]).toEqual([false, escapes > 0]);
    }),
  );
});

test("what stands in strings is no nesting, whatever is escaped in them", () => {
  const depthOf = (value: unknown): number =>
    typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;
  const text = fc.string({ unit: fc.constantFrom("[", "]", "{", "}", '"', "\\", "a", "😀"), maxLength: 300 });
  fc.assert(
    fc.property(fc.dictionary(text, fc.array(text)), fc.nat(300), (value, around) => {
      const json = `${"[".repeat(around)}${JSON.stringify(value)}${"]".repeat(around)}`;
      expect(isTooDeep(json)).toBe(depthOf(value) + around > MAX_JSON_DEPTH);
    }),
  );
  expect(isTooDeep(`"${"[".repeat(1_000)}`)).toBe(false);
});

test("values are counted by their brackets, braces and commas, and not what stands in strings", () => {
  const hasMore = (json: string, than: number) => isTooComplex(json, MAX_JSON_DEPTH, 1_000, than);
  for (const [json, values] of [
    ["[1]", 1],
    ["[1,2,3]", 3],
    ['{"a":{},"b":[[]]}', 5],
    ['["a,b","[{,"]', 2],
  ] as const) {
    expect([hasMore(json, values), hasMore(json, values - 1)]).toEqual([false, true]);
  }
});
