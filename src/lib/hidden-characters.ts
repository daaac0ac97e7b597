/** A character that a reader does not see, or that changes the order in which the others are shown. */
export interface HiddenCharacter {
  code: number;
  /** From 1. */
  line: number;
}

/**
 * Control characters besides tab and line ends, line separators, and all that Unicode shows as nothing: zero-width and
 * bidirectional controls, tags, variation selectors, fillers (U+FE00–FE0F and U+E0000–E0FFF smuggle whole texts past a
 * reader); interlinear annotations too.
 */
const SUSPECT = /[\p{Cc}\p{Default_Ignorable_Code_Point}\u2028\u2029\uFFF9-\uFFFB]/gu;
const USUAL = new Set(["\t", "\n", "\r"]);

const JOINERS = new Set(["\u200C", "\u200D"]);
/** Scripts that are misspelt without joiners; in all others a joiner between letters shows nothing. */
const JOINING =
  /^[\p{Script=Arabic}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Mongolian}\p{Script=Syriac}]$/u;
/** Shows the character before it as text or as a picture. */
const PRESENTATION = new Set(["\uFE0E", "\uFE0F"]);
const PICTURE = /^[\p{Emoji}\p{Extended_Pictographic}]$/u;
const PICTURE_END = /^(?:[\p{Extended_Pictographic}\p{Emoji_Modifier}]|\uFE0F)$/u;

/** The hidden characters of a text, and where they are. A byte order mark may begin it. */
export function* hiddenCharacters(text: string): Generator<{ index: number; character: string }> {
  for (const { 0: character, index } of text.matchAll(SUSPECT)) {
    if (USUAL.has(character) || (character === "\uFEFF" && index === 0)) continue;
    const before = lastCharacter(text.slice(Math.max(0, index - 2), index));
    const next = text.codePointAt(index + character.length);
    const after = next === undefined ? "" : String.fromCodePoint(next);
    if (PRESENTATION.has(character) && PICTURE.test(before)) continue;
    if (character === "\u200D" && PICTURE_END.test(before) && /^\p{Extended_Pictographic}$/u.test(after)) continue;
    if (JOINERS.has(character) && JOINING.test(before) && JOINING.test(after)) continue;
    yield { index, character };
  }
}

/** The first hidden character of a text; undefined if all of it can be seen. */
export function findHidden(text: string): HiddenCharacter | undefined {
  for (const { index, character } of hiddenCharacters(text)) {
    const line = text.slice(0, index).split(/\r\n?|\n/).length;
    return { code: character.codePointAt(0) ?? 0, line };
  }
  return undefined;
}

/** Of at most two UTF-16 units. */
const lastCharacter = (units: string): string => Array.from(units).at(-1) ?? "";

const KINDS: readonly [from: number, to: number, kind: string][] = [
  [0x00, 0x9f, "control character"],
  [0xad, 0xad, "soft hyphen"],
  [0x61c, 0x61c, "bidirectional control"],
  [0x200b, 0x200d, "zero-width character"],
  [0x200e, 0x200f, "bidirectional control"],
  [0x2028, 0x2029, "line separator"],
  [0x202a, 0x202e, "bidirectional control"],
  [0x2060, 0x2064, "zero-width character"],
  [0x2066, 0x2069, "bidirectional control"],
  [0xfe00, 0xfe0f, "variation selector"],
  [0xfeff, 0xfeff, "zero-width character"],
  [0xe0000, 0xe007f, "tag character"],
  [0xe0100, 0xe01ef, "variation selector"],
];

/** `U+200B`. */
export const codePointName = (code: number): string => `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;

/** For a message: `line 3 has U+200B (zero-width character); remove it`. */
export function describeHidden({ code, line }: HiddenCharacter): string {
  const kind = KINDS.find(([from, to]) => code >= from && code <= to)?.[2] ?? "invisible character";
  return `line ${line} has ${codePointName(code)} (${kind}); remove it`;
}
