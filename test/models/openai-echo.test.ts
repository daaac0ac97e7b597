import { expect, test } from "bun:test";
import { oneLine, withoutEchoes } from "../../src/models/openai/echo.ts";

const PROMPT = oneLine("You are Ada, a librarian.\nMy password is correct-horse-battery,\nplease keep it.");

test.each([
  ["bad input: correct-horse-battery, please keep it.", "bad input…"],
  ["'My password is correct-horse-battery' is refused", "'…' is refused"],
  ["one: You are Ada, a librarian. two: please keep it. three", "one…two…three"],
  ["correct-horse-battery", "…"],
])("what a server's error repeats of the prompt is removed: %p", (words, shown) => {
  const clean = withoutEchoes(words, PROMPT);
  expect(clean.replace(/[ :]*…[ ,.]*/g, "…")).toBe(shown);
});

test("also if it is repeated as JSON, with escapes", () => {
  const texts = ['pin: 1234\n"Bob" 5\ncode: 5678', "C:\\new\\table\\rows\\by\\name"];
  const prompt = oneLine(texts.join("\n"));
  for (const text of texts) {
    expect(withoutEchoes(`bad input: "${text}"`.replaceAll("\n", " "), prompt)).toBe('bad input: "…"');
    expect(withoutEchoes(`bad input: ${JSON.stringify(text)}`, prompt)).toBe('bad input: "…"');
  }
  expect(withoutEchoes("cannot read C:\\new\\file", "")).toBe("cannot read C:\\new\\file");
  expect(withoutEchoes("cannot read \\New", prompt)).toBe("cannot read \\New");
});

test("long words that nearly repeat a prompt are compared with all of it", () => {
  // One search for each part of them takes minutes.
  const words = `${"b".repeat(10)}a`.repeat(2_000);
  expect(withoutEchoes(words, "b".repeat(4_000_000))).toBe(words);
  expect(withoutEchoes(`${words} and ${"b".repeat(20)}`, "b".repeat(4_000_000))).toBe(`${words} and …`);
});

test("a server's own words stay as they are", () => {
  for (const words of ["", "The model is overloaded.", "quota of org-acme is used up (429)", "horse", "please"]) {
    expect(withoutEchoes(words, PROMPT)).toBe(words);
    expect(withoutEchoes(words, "")).toBe(words);
  }
});
