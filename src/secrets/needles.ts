/** A text that gives a secret away, and whose it is. */
export interface Needle {
  /** Its first characters; all of it if it is not longer than `COMPARED`. */
  start: string;
  name: string;
  /** All of it. Written anew at each call: a form of a long value is kept nowhere. */
  whole(): string;
}

/**
 * The characters of a needle that are compared at every place of a text; where they are found, the rest counts as far as
 * it goes. So a place costs no more than this, whatever was stored, and a long value that was cut is found too.
 */
export const COMPARED = 1_024;

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
  const trimmed = value.trim();
  const needles = FORMS.map((form) => needleOf(name, value, form));
  if (trimmed !== value) needles.push(needleOf(name, trimmed, FORMS[0]));
  const starts = new Set<string>();
  return needles.filter(({ start }) => {
    if (start.length < MIN_HIDDEN_LENGTH || starts.has(start)) return false;
    // Longer ones may differ in the rest.
    if (start.length < COMPARED) starts.add(start);
    return true;
  });
}

type Form = (value: string) => string;

const hex: Form = (value) => Buffer.from(value).toString("hex");
const inBase64 = [0, 1, 2].map(
  (before): Form =>
    (value) =>
      base64Part(Buffer.from(value), before),
);
const FORMS: readonly [Form, ...Form[]] = [
  (value) => value,
  (value) => value.replaceAll(" ", "+"),
  hex,
  (value) => hex(value).toUpperCase(),
  ...inBase64,
  ...inBase64.map(
    (form): Form =>
      (value) =>
        form(value).replaceAll("+", "-").replaceAll("/", "_"),
  ),
];

/** In every form, the first characters are made of no more characters of the value, and one may be half of a pair. */
const needleOf = (name: string, value: string, form: Form): Needle => ({
  start: form(value.slice(0, COMPARED + 1)).slice(0, COMPARED),
  name,
  whole: () => form(value),
});

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
