import { expect, test } from "bun:test";
import fc from "fast-check";
import { createWordWrap, wrapText } from "../../src/cli/word-wrap.ts";

test("lines wrap at words, and a space at the end of a line is dropped", () => {
  expect(wrapText("The quick brown fox jumps over the lazy dog", 16)).toEqual([
    "The quick brown",
    "fox jumps over",
    "the lazy dog",
  ]);
  expect(wrapText("one\n\n  two three", 10)).toEqual(["one", "", "  two", "three"]);
});

test("width is visible width: wide characters count twice, marks and joiners nothing", () => {
  expect(wrapText("日本語のテキスト", 9)).toEqual(["日本語の", "テキスト"]);
  expect(wrapText("e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301", 8)).toEqual([
    "e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301",
  ]);
  expect(wrapText("👩‍💻👩‍💻👩‍💻", 6)).toEqual(["👩‍💻👩‍💻", "👩‍💻"]);
});

test("no line starts with closing punctuation", () => {
  expect(wrapText("日本語の。はい", 9)).toEqual(["日本語", "の。はい"]);
});

test("a word longer than a line stays in one piece, on a line of its own", () => {
  const address = `https://example.org/${"a".repeat(65)}`;
  expect(wrapText(`see ${address} there`, 20)).toEqual(["see", address, "there"]);
  expect(wrapText(`see ${address} for all the rest`, 20)).toEqual(["see", address, "for all the rest"]);
});

/** What a terminal of this width shows after the writes and removals. */
function createScreen(columns: number, prefix: string) {
  const lines = [prefix];
  const write = createWordWrap(
    {
      write(text) {
        const [first = "", ...others] = text.split("\n");
        lines[lines.length - 1] += first;
        lines.push(...others);
      },
      takeBack(text, column) {
        const line = lines.at(-1) ?? "";
        expect(line).toEndWith(text);
        expect(Bun.stringWidth(line.slice(0, line.length - text.length))).toBe(column);
        lines[lines.length - 1] = line.slice(0, line.length - text.length);
      },
    },
    () => columns,
    { column: prefix.length },
  );
  return { write, lines };
}

const WORDS = fc
  .array(fc.constantFrom("a", "word", "longer-one", "日本語", "ne\u0301", "👍🏽", "👩‍💻", "。", "(x)", "\n", "  "), {
    maxLength: 60,
  })
  .map((words) => words.join(" "));

test("text wraps the same in any number of pieces, and nothing of it is lost", () => {
  fc.assert(
    fc.property(WORDS, fc.integer({ min: 14, max: 40 }), fc.array(fc.nat(7)), (text, columns, cuts) => {
      const whole = createScreen(columns, "Ada> ");
      whole.write(text);
      const pieces = createScreen(columns, "Ada> ");
      let rest = [...text];
      for (const cut of cuts) {
        pieces.write(rest.slice(0, cut).join(""));
        rest = rest.slice(cut);
      }
      pieces.write(rest.join(""));
      expect(pieces.lines).toEqual(whole.lines);
      for (const line of whole.lines) expect(Bun.stringWidth(line)).toBeLessThan(columns);
      const letters = (of: string) => of.replaceAll(/\s/g, "");
      expect(letters(whole.lines.join(""))).toBe(letters(`Ada> ${text}`));
    }),
  );
});
