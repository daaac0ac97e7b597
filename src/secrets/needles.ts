/** A text that gives a secret away, and whose it is. */
export interface Needle {
  text: string;
  name: string;
}

/** Shorter values would be found everywhere, so they are not looked for, and never sent either. */
export const MIN_HIDDEN_LENGTH = 4;

/** Whether a value is long enough, without the spaces around it: a header carries none of them. */
export const canBeHidden = (value: string): boolean => value.trim().length >= MIN_HIDDEN_LENGTH;

/**
 * The forms in which a server may send a value back, as one continuous text: itself, hexadecimal, with `+` for spaces, and
 * base64, also as a part of something longer. Forms that escape single characters are undone before anything is looked
 * for (escapes.ts).
 */
export function needlesOf(name: string, value: string): Needle[] {
  if (!canBeHidden(value)) return [];
  const bytes = Buffer.from(value);
  const hex = bytes.toString("hex");
  const parts = [0, 1, 2].map((before) => base64Part(bytes, before));
  const texts = [
    value,
    value.trim(),
    value.replaceAll(" ", "+"),
    hex,
    hex.toUpperCase(),
    ...parts,
    ...parts.map((part) => part.replaceAll("+", "-").replaceAll("/", "_")),
  ];
  return [...new Set(texts)].filter(({ length }) => length >= MIN_HIDDEN_LENGTH).map((text) => ({ text, name }));
}

/**
 * The characters of base64 that depend on these bytes alone, where `before` bytes (modulo 3) come before them. What
 * comes before and after shares a character with them, which holds less than one byte of the value.
 */
function base64Part(bytes: Buffer, before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), bytes])
    .toString("base64")
    .replace(/=+$/, "");
  const whole = Math.floor(((before + bytes.length) * 8) / 6);
  return text.slice(Math.ceil((before * 8) / 6), whole);
}
