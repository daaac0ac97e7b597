import { expect, test } from "bun:test";
import { languageOf } from "../../src/lib/language.ts";
import { wordsOf } from "../../src/lib/words.ts";

test.each([
  ["Ich bin für dich da.", "de"],
  ["Für Dänemark!", "de"],
  ["¿Qué está?", "es"],
  ["", "en"],
  ["42 🎉", "en"],
] as const)("%s is %s, however its accents are written", (text, language) => {
  expect(languageOf(text.normalize("NFC"))).toBe(language);
  expect(languageOf(text.normalize("NFD"))).toBe(language);
});

test("a word is the same one, however its accents are written", () => {
  expect(wordsOf("Größe, café".normalize("NFD"))).toEqual(["größe", "café"]);
});
