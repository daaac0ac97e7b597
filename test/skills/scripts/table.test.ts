import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { loadScript } from "./load-script.ts";

const table = await loadScript("data-analysis/table.js");
const SALES = `city,product,price,date
Oslo,Tea,3.10,2026-11-01
Oslo,"Coffee, black",4.20,2026-11-02
Rome,Tea,2.05,2026-11-02
Rome,Tea,,2026-11-03
Oslo,Tea,0.10,2026-11-04
`;

test("without a question, the columns are described and the first rows shown", () => {
  expect(table({ text: SALES })).toEqual({
    rows: 5,
    columns: [
      {
        name: "city",
        type: "text",
        filled: 5,
        empty: 0,
        distinct: 2,
        mostCommon: [
          { value: "Oslo", count: 3 },
          { value: "Rome", count: 2 },
        ],
      },
      {
        name: "product",
        type: "text",
        filled: 5,
        empty: 0,
        distinct: 2,
        mostCommon: [
          { value: "Tea", count: 4 },
          { value: "Coffee, black", count: 1 },
        ],
      },
      {
        name: "price",
        type: "number",
        filled: 4,
        empty: 1,
        distinct: 4,
        min: "0.10",
        max: "4.20",
        sum: "9.45",
        mean: "2.3625",
        median: "2.575",
      },
      {
        name: "date",
        type: "date",
        filled: 5,
        empty: 0,
        distinct: 4,
        min: "2026-11-01",
        max: "2026-11-04",
        mostCommon: [
          { value: "2026-11-02", count: 2 },
          { value: "2026-11-01", count: 1 },
          { value: "2026-11-03", count: 1 },
        ],
      },
    ],
    first: [
      { city: "Oslo", product: "Tea", price: "3.10", date: "2026-11-01" },
      { city: "Oslo", product: "Coffee, black", price: "4.20", date: "2026-11-02" },
      { city: "Rome", product: "Tea", price: "2.05", date: "2026-11-02" },
    ],
    notes: [],
  });
});

test("groups are aggregated, sorted and cut, and the total is told", () => {
  const asked = {
    text: SALES,
    groupBy: ["city"],
    aggregate: [{ fn: "sum", column: "price" }, { fn: "count" }, { fn: "distinct", column: "product" }],
    sort: "-sum of price",
  };
  expect(table(asked)).toEqual({
    total: 2,
    shown: 2,
    notes: [],
    rows: [
      { city: "Oslo", "sum of price": "7.4", count: "3", "distinct of product": "2" },
      { city: "Rome", "sum of price": "2.05", count: "2", "distinct of product": "1" },
    ],
  });
  expect(table({ ...asked, limit: 1, select: ["city"], as: "csv" })).toEqual({
    total: 2,
    shown: 1,
    notes: [],
    text: "city\nOslo",
  });
});

describe("of the conditions,", () => {
  const CASES: [is: string, value: unknown, prices: string[]][] = [
    ["=", "3.1", ["3.10"]],
    ["!=", "2.05", ["3.10", "4.20", "", "0.10"]],
    ["<", 3, ["2.05", "0.10"]],
    ["<=", "3.10", ["3.10", "2.05", "0.10"]],
    [">", "3.1", ["4.20"]],
    [">=", 2.05, ["3.10", "4.20", "2.05"]],
    ["contains", ".1", ["3.10", "0.10"]],
    ["in", ["4.2", "0.1"], ["4.20", "0.10"]],
    ["empty", undefined, [""]],
    ["filled", undefined, ["3.10", "4.20", "2.05", "0.10"]],
  ];
  test.each(CASES)("%s %p leaves %p", (is, value, prices) => {
    const { rows } = table({ text: SALES, where: [{ column: "price", is, value }], select: ["price"] });
    expect(rows.map(({ price }: { price: string }) => price)).toEqual(prices);
  });

  test("all must hold", () => {
    const where = [
      { column: "city", value: "oslo" },
      { column: "product", is: "contains", value: "TEA" },
    ];
    expect(table({ text: SALES, where }).total).toBe(2);
  });
});

test("sorted by several columns: numbers by size, before texts", () => {
  const text = "n,t\n10,b\n9,b\n9,a\nx,a\n,a";
  const { rows } = table({ text, sort: ["n", "-t"] });
  expect(rows.map(({ n, t }: { n: string; t: string }) => n + t)).toEqual(["9b", "9a", "10b", "a", "xa"]);
});

test("the first rows of an order are those that sorting all of them gives", () => {
  const row = fc.tuple(fc.integer({ min: 0, max: 5 }), fc.constantFrom("a", "b", "c"));
  fc.assert(
    fc.property(fc.array(row, { minLength: 1, maxLength: 40 }), fc.integer({ min: 1, max: 10 }), (rows, limit) => {
      const numbered = rows.map(([n, t], at) => ({ n: String(n), t, at: String(at) }));
      const text = JSON.stringify(numbered);
      const sorted = numbered.toSorted((a, b) => Number(b.n) - Number(a.n) || (a.t < b.t ? -1 : a.t > b.t ? 1 : 0));
      expect(table({ text, sort: ["-n", "t"], limit }).rows).toEqual(sorted.slice(0, limit));
    }),
  );
});

test.each([
  ["semicolons and decimal commas", { text: "a;b\n1.234,56;x\n0,44;y", decimal: "," }, "1235"],
  ["tabs", { text: "a\tb\n1\tx\n2\ty" }, "3"],
  ["bars", { text: "a|b\n1|x\n2|y" }, "3"],
  ["a byte order mark", { text: "\uFEFFa,b\n1,x\n2,y" }, "3"],
  ["line ends of Windows", { text: "a,b\r\n1,x\r\n2,y\r\n" }, "3"],
  ["line ends of old Macs", { text: "a,b\r1,x\r2,y" }, "3"],
  ["empty lines", { text: "a,b\n\n1,x\n\n2,y\n\n" }, "3"],
  ["commas in quotes, when the separator is guessed", { text: 'a;b\n1;"x,x,x,x,x"\n2;"y,y"' }, "3"],
  ["numbers with an exponent", { text: "a\n1e2\n2E0" }, "102"],
  ["negative numbers and bare points", { text: "a,b\n-1.5,x\n.5,y\n4.,z" }, "3"],
])("a table with %s is read", (_, input, sum) => {
  expect(table({ ...input, aggregate: [{ fn: "sum", column: "a" }] }).rows).toEqual([{ "sum of a": sum }]);
});

test("a table without a header has numbered columns; the same name twice is told apart, an empty one is numbered", () => {
  expect(table({ text: "1,2", header: false, limit: 1 }).rows).toEqual([{ "column 1": "1", "column 2": "2" }]);
  expect(table({ text: "a,a,,__proto__\n1,2,3,4", as: "csv" }).text).toBe("a,a (2),column 3,__proto__\n1,2,3,4");
});

test("uneven rows are filled or cut, and told", () => {
  expect(table({ text: "a,b\n1\n1,2,3\n1,2", limit: 3 })).toMatchObject({
    rows: [
      { a: "1", b: "" },
      { a: "1", b: "2" },
      { a: "1", b: "2" },
    ],
    notes: ["2 rows do not have 2 cells: missing ones are empty, others left out"],
  });
});

test("sums of decimal numbers are exact, however many and however large", () => {
  const amount = fc.tuple(fc.bigInt({ min: -(10n ** 24n), max: 10n ** 24n }), fc.integer({ min: 0, max: 6 }));
  fc.assert(
    fc.property(fc.array(amount, { minLength: 1, maxLength: 50 }), (amounts) => {
      const written = amounts.map(([whole, places]) => {
        const digits = (whole < 0n ? -whole : whole).toString().padStart(places + 1, "0");
        const point = places > 0 ? `.${digits.slice(-places)}` : "";
        return `${whole < 0n ? "-" : ""}${digits.slice(0, digits.length - places)}${point}`;
      });
      const total = amounts.reduce((sum, [whole, places]) => sum + whole * 10n ** BigInt(6 - places), 0n);
      const told: string = table({ text: ["a", ...written].join("\n"), aggregate: [{ fn: "sum", column: "a" }] })
        .rows[0]["sum of a"];
      const [, sign, before = "", after = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(told) ?? [];
      expect(BigInt(sign + before + after.padEnd(6, "0"))).toBe(total);
    }),
  );
});

test("whatever is in the cells, a table that is written as CSV is read as it was", () => {
  const cell = fc.oneof(
    fc.string({ maxLength: 8 }),
    fc.string({ unit: fc.constantFrom('"', ",", "\n", ";", "é", " "), maxLength: 6 }),
  );
  const rows = fc
    .integer({ min: 2, max: 4 })
    .chain((width) => fc.array(fc.array(cell, { minLength: width, maxLength: width }), { minLength: 1, maxLength: 6 }));
  fc.assert(
    fc.property(rows, fc.constantFrom("\n", "\r\n"), fc.boolean(), (rows, lineEnd, ends) => {
      const quoted = rows.map((row) => row.map((text) => `"${text.replaceAll('"', '""')}"`).join(","));
      const text = quoted.join(lineEnd) + (ends ? lineEnd : "");
      const told = table({ text, separator: ",", format: "csv", header: false, limit: 10 });
      const clean = (text: string) => text.replace(/\r\n?/g, "\n");
      expect(told.rows.map((row: object) => Object.values(row))).toEqual(rows.map((row) => row.map(clean)));
      const again = table({
        text: table({ text, separator: ",", header: false, format: "csv", as: "csv" }).text,
        format: "csv",
        separator: ",",
        limit: 10,
      });
      expect(again.rows).toEqual(told.rows);
    }),
    { numRuns: 500 },
  );
});

test.each([
  [
    "a list of objects",
    '[{"a":1,"b":{"c":"x"}},{"a":2.5}]',
    undefined,
    [
      { a: "1", "b.c": "x" },
      { a: "2.5", "b.c": "" },
    ],
  ],
  ["an object with one list", '{"count":2,"items":[{"a":1},{"a":2}]}', undefined, [{ a: "1" }, { a: "2" }]],
  ["a path", '{"data":{"a":[1],"b":[{"x":true}]}}', "data.b", [{ x: "true" }]],
  ["a list of numbers", "[1,2]", undefined, [{ value: "1" }, { value: "2" }]],
  ["lists and null in it", '[{"a":[1,2],"b":null}]', undefined, [{ a: "[1,2]" }]],
  ["one object", '{"a":1}', undefined, [{ a: "1" }]],
])("JSON is read as a table: %s", (_, text, path, rows) => {
  expect(table({ text, path, limit: 10 }).rows).toEqual(rows);
});

test("objects deeper than five levels are kept as JSON", () => {
  expect(table({ text: '[{"a":{"b":{"c":{"d":{"e":{"f":1}}}}}}]', limit: 1 }).rows).toEqual([
    { "a.b.c.d.e": '{"f":1}' },
  ]);
});

test.each([
  [{}, 'expected { "text"'],
  [{ text: "" }, "expected at least one row"],
  [{ text: 'a,b\n1,"x' }, 'the quote in row 2 does not end: ""x"'],
  [{ text: "a\n1", separator: "::" }, "separator: expected one character"],
  [{ text: "[1" }, "text: expected CSV, or valid JSON"],
  [{ text: '{"a":{"b":1}}', path: "a.c" }, 'path: there is no "c"; there are: b'],
  [{ text: '{"a":[],"b":[]}' }, "path: expected one of a, b"],
  [{ text: '{"a":1}', path: "__proto__" }, 'path: there is no "__proto__"'],
  [{ text: SALES, select: ["town"] }, 'there is no column "town"; there are: city, product, price, date'],
  [{ text: SALES, where: [{ column: "city", is: "like" }] }, 'where: there is no "like"; there are: = !='],
  [{ text: SALES, aggregate: [{ fn: "constructor", column: "city" }] }, 'aggregate: there is no "constructor"'],
  [{ text: SALES, aggregate: [{ fn: "sum", column: "city" }] }, 'sum of city: "Oslo" is not a number'],
  [{ text: SALES, limit: 501 }, "limit: expected 1 to 500"],
  [{ text: SALES, as: "xml" }, 'as: expected "rows" or "csv"'],
])("%p is refused: %s", (input, message) => {
  expect(() => table(input)).toThrow(message);
});

test("more text, rows or columns than the limits are refused, and as many are read", () => {
  expect(() => table({ text: "x".repeat(2_000_001) })).toThrow("at most 2000000 characters, got 2000001");
  expect(() => table({ text: `a,b\n${"1,2\n".repeat(200_001)}` })).toThrow("at most 200000 rows");
  expect(() => table({ text: ",".repeat(500) })).toThrow("at most 500 columns");
  expect(() => table({ text: `{"items":[${"1,".repeat(200_000)}1]}` })).toThrow("at most 200000 rows");
  const most = table({ text: `a,b\n${"1,2\n".repeat(200_000)}`, aggregate: [{ fn: "sum", column: "b" }] });
  expect(most.rows).toEqual([{ "sum of b": "400000" }]);
});

test("text that is made to be slow is read at once", () => {
  const digits = `${"1".repeat(1_900_000)}x`;
  expect(table({ text: `a\n${digits}`, format: "csv" }).columns[0].type).toBe("text");
  expect(table({ text: `a,b\n${'"'.repeat(1_900_000)},1`, limit: 1 }).rows[0].b).toBe("1");
});
