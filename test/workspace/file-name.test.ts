import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AppError } from "../../src/lib/app-error.ts";
import { NO_NAMES, parseFileName, refuseClash } from "../../src/workspace/file-name.ts";
import { standing } from "./disk.ts";

const part = fc.stringMatching(/^[A-Za-z0-9_ -][A-Za-z0-9._ -]{0,99}$/);
const nameOf = (parts: fc.Arbitrary<string>) => fc.array(parts, { minLength: 1, maxLength: 8 }).map((p) => p.join("/"));

describe("a file name", () => {
  test("of one to eight allowed parts is kept as it was given", () => {
    fc.assert(fc.property(nameOf(part), (name) => parseFileName(name) === name));
  });

  test.each([
    ["", "empty"],
    ["/etc/passwd", "absolute"],
    ["a/", "an empty part"],
    ["a//b", "an empty part"],
    ["..", "the folder above"],
    ["a/../b", "the folder above"],
    ["./a", "the folder itself"],
    [".git/config", "a leading dot"],
    ["a/.env", "a leading dot"],
    ["a\\b", "a backslash"],
    ["a\nb", "a line break"],
    ["a\n", "a line break at the end"],
    ["a\0b", "a NUL"],
    ["caf\u00e9.md", "a letter beyond ASCII"],
    ["C:x", "a colon"],
    ["x".repeat(101), "a part of 101 characters"],
    ["a/b/c/d/e/f/g/h/i", "nine parts"],
  ])("%j is refused: %s", (name) => {
    expect(() => parseFileName(name, "files")).toThrow(/^files: expected a relative file name/);
  });

  test("that is accepted never leads up, out or to a hidden file, whatever the text", () => {
    const nasty = fc.string({ unit: fc.constantFrom(".", "/", "a", " ", "\\", "\0", "\n", "-", "é"), maxLength: 24 });
    fc.assert(
      fc.property(nasty, (text) => {
        const parts = text.split("/");
        const isSafe = parts.length <= 8 && parts.every((p) => /^[a .-]+$/.test(p) && !p.startsWith("."));
        expect(accepts(() => parseFileName(text))).toBe(isSafe);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("names in the same workspace", () => {
  test.each([
    [["README.md"], "readme.md"],
    [["a"], "a/b"],
    [["a/b"], "a"],
    [["a"], "A/b"],
    [["Notes/a"], "notes/b"],
    [["caf\u00e9"], "cafe\u0301"],
    [["empty/"], "empty"],
  ])("%j and %j clash", (existing, name) => {
    expect(() => refuseClash(standing(existing), [name], "files")).toThrow(/^files: expected /);
  });

  test.each([
    [["README.md"], "README.md"],
    [["a/b"], "a/c"],
    [["a"], "ab"],
    [["a.b/c"], "a/c"],
    [["empty/"], "empty/a"],
  ])("%j and %j do not clash", (existing, name) => {
    refuseClash(standing(existing), [name]);
  });

  test("clash also among those added together", () => {
    expect(() => refuseClash(NO_NAMES, ["a", "a/b"])).toThrow(AppError);
    expect(() => refuseClash(NO_NAMES, ["a", "A"])).toThrow(AppError);
  });

  test("that clash because of an operator do not prevent writing one of them, or others", () => {
    refuseClash(standing(["a.md", "A.md"]), ["a.md", "A.md", "b.md"]);
  });

  test("are refused exactly if two of them, or of their folders, would be one entry on a disk that ignores case", () => {
    const few = nameOf(fc.constantFrom("a", "A", "b", "B", "c")).filter((name) => name.length <= 5);
    fc.assert(
      fc.property(fc.uniqueArray(few, { maxLength: 5 }), few, (existing, name) => {
        fc.pre(accepts(() => refuseClash(NO_NAMES, existing)));
        expect(accepts(() => refuseClash(standing(existing), [name]))).toBe(
          existing.every((other) => standsBeside(other, name)),
        );
      }),
      { numRuns: 2_000 },
    );
  });
});

/** The rule in its slow form: every step of one name against every step of the other. */
function standsBeside(one: string, other: string): boolean {
  const pathEntries = (name: string) => {
    const parts = name.split("/");
    return parts.map((_, i) => ({ path: parts.slice(0, i + 1).join("/"), isFile: i === parts.length - 1 }));
  };
  return pathEntries(one).every((a) =>
    pathEntries(other).every(
      (b) => a.path.toLowerCase() !== b.path.toLowerCase() || (a.path === b.path && a.isFile === b.isFile),
    ),
  );
}

function accepts(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === "invalid_request") return false;
    throw error;
  }
}
