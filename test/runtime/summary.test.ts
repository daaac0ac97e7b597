import { expect, test } from "bun:test";
import { keptItems, namesIn } from "../../src/runtime/summary.ts";

test("names of files are found with their folders, beside pages and ids", () => {
  const text = "See /home/ada/src/tide-table.ts, ./notes.md, https://tides.example/a/b.html and PROJ-17 (v1.2).";
  const names = ["home/ada/src/tide-table.ts", "./notes.md", "https://tides.example/a/b.html", "PROJ-17"];
  expect(namesIn(text)).toEqual(names);
});

// The square of this many characters is minutes.
const MANY = 400_000;

test.each([
  ["of letters", "aBcDeFgHiJ"],
  ["of base64url", "aBcD-eFg_H"],
  ["of folders", "a/"],
  ["of parts with dots", "ab."],
  ["of dashes", "-"],
])("a part of one long word %s is looked through as far as it has names", (_, piece) => {
  const long = piece.repeat(MANY / piece.length);
  expect(namesIn(`first.txt ${long} last.txt`).filter((name) => name.endsWith(".txt"))).toEqual([
    "first.txt",
    "last.txt",
  ]);
});

test.each(["„", "“", "«"])("a summary of nothing but %s is looked through as far as it has quotes", (mark) => {
  const said = "We meet on Friday.";
  expect(keptItems([], said, `Decided: "${said}" ${mark.repeat(MANY)}`, 1_000)).toEqual([said]);
});
