import { expect, test } from "bun:test";
import { canonicalJson, hashOfJson } from "../../src/lib/canonical-json.ts";

test("the example of RFC 8785 has the form that it is given there", () => {
  const value = JSON.parse(`{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
    "literals": [null, true, false]
  }`);
  expect(canonicalJson(value)).toBe(
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  );
});

test("members are sorted by their names' UTF-16 code units", () => {
  const names = ["\u20ac", "\r", "\ufb33", "1", "\u{1f600}", "\u0080", "\u00f6"];
  const value = Object.fromEntries(names.map((name) => [name, 0]));
  expect(Object.keys(JSON.parse(canonicalJson(value))).filter((name) => name !== "1")).toEqual([
    ...["\r", "\u0080", "\u00f6", "\u20ac", "\u{1f600}", "\ufb33"],
  ]);
  expect(canonicalJson(value).startsWith('{"\\r":0,"1":0,')).toBe(true);
});

test("the order of members does not change the hash, and anything else does", () => {
  const hash = hashOfJson({ a: 1, b: [1, 2] });
  expect(hashOfJson(JSON.parse('{ "b": [1, 2], "a": 1.0 }'))).toBe(hash);
  for (const other of [{ a: 1, b: [2, 1] }, { a: "1", b: [1, 2] }, { a: 1, b: [1, 2], c: null }, { a: 1 }]) {
    expect(hashOfJson(other)).not.toBe(hash);
  }
  // A name that JavaScript has a meaning for is a name like any other.
  expect(canonicalJson(JSON.parse('{"__proto__":{"a":1},"constructor":2}'))).toBe(
    '{"__proto__":{"a":1},"constructor":2}',
  );
});

test("what is no JSON, or no Unicode, is refused", () => {
  for (const value of ["\ud800", { "\udc00": 1 }, Number.NaN, Number.POSITIVE_INFINITY, undefined, () => 1]) {
    expect(() => canonicalJson(value)).toThrow(TypeError);
  }
});
