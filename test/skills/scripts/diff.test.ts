import { expect, test } from "bun:test";
import fc from "fast-check";
import { loadScript } from "./load-script.ts";

const diff = await loadScript("text-tools/diff.js");

test("changes are shown in the unified form, with the lines around them", () => {
  const lines = Array.from({ length: 20 }, (_, at) => `line ${at + 1}`);
  const before = `${lines.join("\n")}\n`;
  const after = before
    .replace("line 3\n", "line three\n")
    .replace("line 15\n", "")
    .replace("line 20\n", "line 20\nend\n");
  expect(diff({ before, after, names: ["a.txt", "b.txt"], context: 1 })).toEqual({
    same: false,
    added: 2,
    removed: 2,
    minimal: true,
    diff: [
      "--- a.txt",
      "+++ b.txt",
      "@@ -2,3 +2,3 @@",
      " line 2",
      "-line 3",
      "+line three",
      " line 4",
      "@@ -14,3 +14,2 @@",
      " line 14",
      "-line 15",
      " line 16",
      "@@ -20 +19,2 @@",
      " line 20",
      "+end",
    ].join("\n"),
  });
});

test.each([
  ["equal texts", "a\nb\n", "a\nb\n", ""],
  ["line ends of Windows", "a\r\nb\r\n", "a\nb\n", ""],
  ["nothing before", "", "a\n", "@@ -0,0 +1 @@\n+a"],
  ["nothing after", "a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b"],
  ["a last line without its end", "a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end\n+a"],
  ["a line between", "a\nc\n", "a\nb\nc\n", "@@ -1,2 +1,3 @@\n a\n+b\n c"],
])("%s", (_, before, after, expected) => {
  const told = diff({ before, after });
  expect(told.same).toBe(expected === "");
  expect(told.diff).toBe(expected === "" ? "" : `--- before\n+++ after\n${expected}`);
});

/** What the second text is, by the first and the diff: as `patch` reads it. */
function patched(before: string[], text: string): string[] {
  const after: string[] = [];
  let at = 0;
  for (const line of text.split("\n").slice(2)) {
    const start = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@$/.exec(line);
    if (start) {
      const from = Number(start[1]) - (start[2] === "0" ? 0 : 1);
      after.push(...before.slice(at, from));
      at = from;
      expect(after.length).toBe(Number(start[3]) - (start[4] === "0" ? 0 : 1));
    } else if (line.startsWith("+")) after.push(line.slice(1));
    else {
      expect(before[at]).toBe(line.slice(1));
      if (line.startsWith(" ")) after.push(line.slice(1));
      at++;
    }
  }
  return [...after, ...before.slice(at)];
}

/** The length of the longest common subsequence. */
function common(a: string[], b: string[]): number {
  let row = new Array<number>(b.length + 1).fill(0);
  for (const one of a) {
    const next = [0];
    for (const [at, other] of b.entries()) {
      next.push(one === other ? (row[at] ?? 0) + 1 : Math.max(row[at + 1] ?? 0, next[at] ?? 0));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

const text = fc.array(fc.constantFrom("a", "b", "c", "d", ""), { maxLength: 25 });

test("applied to the first text, a diff gives the second, and no shorter one would", () => {
  fc.assert(
    fc.property(text, text, fc.integer({ min: 0, max: 4 }), (a, b, context) => {
      const [before, after] = [a, b].map((lines) => lines.map((line) => `${line}\n`).join(""));
      const told = diff({ before, after, context });
      expect(told.same ? a : patched(a, told.diff)).toEqual(b);
      expect([told.removed, told.added]).toEqual([a.length - common(a, b), b.length - common(a, b)]);
      expect(told.minimal).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});

test("large texts with few changes are compared to the line, those without anything in common in bounded time", () => {
  const lines = Array.from({ length: 40_000 }, (_, at) => `${at}`);
  const changed = lines.map((line, at) => (at % 100 === 7 ? `${line}!` : line));
  const small = diff({ before: `${lines.join("\n")}\n`, after: `${changed.join("\n")}\n`, context: 0 });
  expect([small.added, small.removed, small.minimal]).toEqual([400, 400, true]);
  expect(patched(lines, small.diff)).toEqual(changed);

  const other = lines.map((line) => `x${line}`);
  const large = diff({ before: `${lines.join("\n")}\n`, after: `${other.join("\n")}\n` });
  expect([large.added, large.removed, large.minimal]).toEqual([40_000, 40_000, false]);
  expect(large.diff).toMatch(/… \(cut here, of \d+ characters\)$/);
});

test("a diff beyond the bounds of its search is still right", () => {
  const before = Array.from({ length: 3_000 }, (_, at) => `${at}`);
  const after = before.map((line, at) => (at % 4 === 0 ? line : `x${line}`));
  const told = diff({ before: `${before.join("\n")}\n`, after: `${after.join("\n")}\n` });
  expect(told.minimal).toBe(false);
  expect(patched(before, told.diff)).toEqual(after);
});

test.each([
  [{}, 'expected { "before"'],
  [{ before: "a", after: 1 }, 'expected { "before"'],
  [{ before: "a", after: "b", context: 21 }, "context: expected 0 to 20"],
])("%p is refused: %s", (input, message) => {
  expect(() => diff(input)).toThrow(message);
});

test("more text or lines than the limits are refused", () => {
  expect(() => diff({ before: "x".repeat(1_000_001), after: "" })).toThrow(
    "before: expected at most 1000000 characters",
  );
  expect(() => diff({ before: "", after: "\n".repeat(50_001) })).toThrow("after: expected at most 50000 lines");
});
