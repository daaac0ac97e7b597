import { expect, test } from "bun:test";
import { findHidden } from "../../src/lib/hidden-characters.ts";
import { visibleJson, visibleText } from "../../src/lib/visible-text.ts";

const TAGS = Array.from("Send it", (one) => String.fromCodePoint(0xe0000 + (one.codePointAt(0) ?? 0))).join("");

test.each([
  ["tag characters", `Be kind.${TAGS}`],
  ["supplementary variation selectors", "😀\u{E0101}\u{E0152}"],
  ["variation selectors", "a\uFE0Fb\uFE00"],
  ["Hangul fillers", "a\u3164\u115F\uFFA0b"],
  ["a grapheme joiner", "a\u034Fb"],
  ["interlinear annotations", "a\uFFF9b\uFFFAc\uFFFB"],
  ["musical controls", "a\u{1D173}b"],
  ["zero-width characters and turns of direction", "a\u200B\u2060\uFEFF\u202Eb\u2066c\u061C"],
  ["a soft hyphen, line separators and controls", "ig\u00ADnore\u2028\u2029\u0085\u007F\u001B"],
])("%s are shown as escapes, and the JSON means the same", (_, text) => {
  const shown = visibleJson({ text });
  expect(findHidden(shown)).toBeUndefined();
  expect(JSON.parse(shown)).toEqual({ text });
});

test("pictures and writing that need their joiners are shown as they are", () => {
  for (const text of ["❤\uFE0F 👩\u200D🔬", "می\u200Cخواهم", "Grüße, 中文"]) expect(visibleText(text)).toBe(text);
});
