import { expect, test } from "bun:test";
import { newLines } from "../../src/memory/lines.ts";

test("the new lines of a text are those that it has more often than before, wherever they stand", () => {
  for (const [before, after, expected] of [
    ["", "a\nb\n", ["a", "b"]],
    ["a\n", "a\nb\n", ["b"]],
    ["a", "a\nb", ["b"]],
    ["\na\n", "b\n\na\n", ["b"]],
    ["a\nb\nc\n", "a\nc\nb\n", []],
    ["a\nb\n", "a\na\nb\nb\nb\n", ["a", "b", "b"]],
    ["a\nb\n", "a\nbc\n", ["bc"]],
    ["abc\n", "ab\n", ["ab"]],
    ["  a\n", "a \n\n", []],
    ["a\nb\n", "a\n", []],
  ] as const) {
    expect([before, after, newLines(before, after).toSorted()]).toEqual([before, after, [...expected]]);
  }
});
