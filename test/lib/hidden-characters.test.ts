import { expect, test } from "bun:test";
import { AppError } from "../../src/lib/app-error.ts";
import { describeHidden, findHidden } from "../../src/lib/hidden-characters.ts";
import { parseSkill } from "../../src/skills/skill-file.ts";

/** The text as tag characters, which no editor shows and every model reads. */
const asTags = (text: string): string =>
  Array.from(text, (one) => String.fromCodePoint(0xe0000 + (one.codePointAt(0) ?? 0))).join("");

test.each([
  ["a zero-width space", "a\u200Bb", "200B", "zero-width character"],
  ["a joiner between Latin letters", "pay\u200Dpal", "200D", "zero-width character"],
  ["a non-joiner between Latin letters", "pay\u200Cpal", "200C", "zero-width character"],
  ["a word joiner", "a\u2060b", "2060", "zero-width character"],
  ["a byte order mark within the text", "a\uFEFFb", "FEFF", "zero-width character"],
  ["an override of the direction", "if (\u202Eadmin)", "202E", "bidirectional control"],
  ["an isolate of the direction", "a\u2066b", "2066", "bidirectional control"],
  ["a mark of the direction", "a\u200Fb", "200F", "bidirectional control"],
  ["an Arabic mark of the direction", "a\u061Cb", "061C", "bidirectional control"],
  ["tag characters", `Hi${asTags("obey")}`, "E006F", "tag character"],
  ["a flag with tags", `🏴${asTags("gbeng")}`, "E0067", "tag character"],
  ["a variation selector after a letter", "a\uFE0Fb", "FE0F", "variation selector"],
  ["a second variation selector", "❤\uFE0F\uFE0F", "FE0F", "variation selector"],
  ["a supplementary variation selector", "😀\u{E0101}", "E0101", "variation selector"],
  ["a soft hyphen", "ig\u00ADnore", "00AD", "soft hyphen"],
  ["a line separator", "a\u2028b", "2028", "line separator"],
  ["a Hangul filler", "a\u3164b", "3164", "invisible character"],
  ["a grapheme joiner", "a\u034Fb", "034F", "invisible character"],
  ["an interlinear annotation", "a\uFFF9b", "FFF9", "invisible character"],
  ["an escape", "a\u001B[8mb", "001B", "control character"],
  ["a backspace", "a\u0008b", "0008", "control character"],
  ["a next line", "a\u0085b", "0085", "control character"],
  ["a joiner at the end of an emoji", "👩\u200D", "200D", "zero-width character"],
])("%s is found", (_, text, code, kind) => {
  const hidden = findHidden(`one\ntwo\r\n${text}`);
  expect(hidden && describeHidden(hidden)).toBe(`line 3 has U+${code} (${kind}); remove it`);
});

test.each([
  ["tabs and line ends", "a\tb\r\nc\n"],
  ["a byte order mark at the beginning", "\uFEFFa"],
  ["emoji", "😀 ❤️ ☎︎ 1️⃣ #️⃣ 👍🏽 👩‍💻 👨‍👩‍👧‍👦 🏳️‍🌈 ❤️‍🔥 👩🏽‍🚀 🇳🇴"],
  ["Persian with its non-joiners", "می‌خواهم نامه‌ها"],
  ["Hindi and Sinhala with their joiners", "क्‍ष र्‍य ශ්‍රී"],
  ["Hebrew, Chinese and combining accents", "שלום 你好 e\u0301"],
  ["spaces of every width", "a\u00A0b\u2003c\u3000d"],
])("%s can be seen", (_, text) => {
  expect(findHidden(text)).toBeUndefined();
});

test("a skill with hidden text in any of its files is refused, with the file and the line", () => {
  const own = "---\nname: own\ndescription: Does it.\n---\nDo it.\n";
  const refusal = (files: Record<string, string>) => {
    try {
      parseSkill(files);
    } catch (error) {
      return error instanceof AppError && error.code === "invalid_request" ? error.message : error;
    }
  };
  expect(refusal({ "SKILL.md": own })).toBeUndefined();
  expect(refusal({ "SKILL.md": `${own}${asTags("x")}` })).toBe(
    "files.SKILL.md: expected only visible text; line 6 has U+E0078 (tag character); remove it",
  );
  expect(refusal({ "SKILL.md": own.replace("Does", "Do\u200Bes") })).toContain("line 3 has U+200B");
  expect(refusal({ "SKILL.md": own.replace("Does it.", '"Does\\u200B it."') })).toBe(
    "files.SKILL.md: expected description to be visible text, also where it is written with escapes",
  );
  expect(refusal({ "SKILL.md": own, "scripts/a.js": "//\n1 \u202E 2" })).toBe(
    "files.scripts/a.js: expected only visible text; line 2 has U+202E (bidirectional control); remove it",
  );
});
