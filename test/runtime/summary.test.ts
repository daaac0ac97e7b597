import { expect, test } from "bun:test";
import { keptItems, namesIn, summaryText } from "../../src/runtime/summary.ts";

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

/** Each is nearly in a text of nothing but b: looking for one after the other takes minutes. */
const nearly = (count: number, length: number, odd = "1") =>
  Array.from({ length: count }, (_, at) => `${"b".repeat(at)}${odd}${"b".repeat(length - 1 - at)}`);

test("a part of a longer name is not kept beside it, however long that one is", () => {
  const page = `https://tides.example/${"b".repeat(4_000_000)}`;
  const names = [...nearly(240, 290), ...nearly(240, 290, "2")];
  expect(namesIn(`${page} ${names.join(" ")} ${"b".repeat(100)}.md ${"b".repeat(99)}.md`)).toEqual([
    ...names,
    `${"b".repeat(100)}.md`,
  ]);
});

test("many quotes are looked for in a long text at once", () => {
  const quotes = Array.from({ length: 10 }, () => nearly(290, 290)).flat();
  const summary = [...quotes, "b".repeat(100)].map((quote) => `"${quote}"`).join(" ");
  expect(keptItems([], "b".repeat(4_000_000), summary, 1_000)).toEqual(["b".repeat(100)]);
});

test("what a summary says itself is not said again, however much is kept", () => {
  const items = nearly(1_000, 1_000);
  const summary = { text: "b".repeat(4_000_000), items: ["b".repeat(100), ...items], messages: 1, isTainted: false };
  expect(summaryText(summary).split("\n- ").slice(1)).toEqual(items);
});
