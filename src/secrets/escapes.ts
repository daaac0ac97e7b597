import type { InSlices } from "../limits/slices.ts";

/** A text whose escapes were undone, and the way back to the places it came from. */
export interface Unescaped {
  text: string;
  /** The range of the original that a range of `text` stands for. */
  original(start: number, end: number): [start: number, end: number];
}

/** A character in percent-encoded UTF-8. */
const PERCENT = [
  "%[0-7][0-9a-f]",
  "%[cd][0-9a-f]%[89ab][0-9a-f]",
  "%e[0-9a-f](?:%[89ab][0-9a-f]){2}",
  "%f[0-7](?:%[89ab][0-9a-f]){3}",
];
/** JSON and JavaScript; before punctuation, also Markdown. */
const BACKSLASH = ["\\\\u[0-9a-f]{4}", "\\\\x[0-9a-f]{2}", "\\\\[!-/:-@[-`{-~bfnrt]"];
/** Character references of HTML. */
const REFERENCE = ["&#\\d{1,7};", "&#x[0-9a-f]{1,6};", "&(?:amp|lt|gt|quot|apos);"];
const ESCAPES = new RegExp([...PERCENT, ...BACKSLASH, ...REFERENCE].join("|"), "gi");

/** How many escapes are undone at a time. */
const PART = 256;

const NAMED: Readonly<Record<string, string>> = {
  "\\b": "\b",
  "\\f": "\f",
  "\\n": "\n",
  "\\r": "\r",
  "\\t": "\t",
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&apos;": "'",
};

/** Undoes one level of escapes, of all kinds at once; null if there are none. */
export async function undoEscapes(text: string, inSlices: InSlices): Promise<Unescaped | null> {
  const pieces: string[] = [];
  /** Where each piece begins, there and here: plain text and escapes by turns. */
  const [from, to]: [number[], number[]] = [[], []];
  let read = 0;
  let written = 0;
  const add = (piece: string, at: number) => {
    pieces.push(piece);
    from.push(at);
    to.push(written);
    written += piece.length;
  };
  const matches = text.matchAll(ESCAPES);
  const addSome = (): "more" | "end" => {
    for (let count = 0; count < PART; count++) {
      const { value: match, done } = matches.next();
      if (done) return "end";
      add(text.slice(read, match.index), read);
      add(meaning(match[0]), match.index);
      read = match.index + match[0].length;
    }
    return "more";
  };
  while ((await inSlices(addSome)) === "more");
  if (pieces.length === 0) return null;
  add(text.slice(read), read);
  from.push(text.length);
  return {
    text: await inSlices(() => pieces.join("")),
    original(start, end) {
      const [first, last] = [pieceAt(to, start), pieceAt(to, end - 1)];
      // Of an escape, all is meant.
      const begins = (from[first] ?? 0) + (first % 2 === 0 ? start - (to[first] ?? 0) : 0);
      const ends = last % 2 === 0 ? (from[last] ?? 0) + end - (to[last] ?? 0) : (from[last + 1] ?? text.length);
      return [begins, ends];
    },
  };
}

/** The last piece that begins at or before this place, and is not empty. */
function pieceAt(starts: readonly number[], place: number): number {
  let [low, high] = [0, starts.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((starts[middle] ?? 0) <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}

function meaning(written: string): string {
  const named = NAMED[written.toLowerCase()];
  if (named !== undefined) return named;
  if (written.startsWith("%")) return Buffer.from(written.replaceAll("%", ""), "hex").toString();
  if (/^\\[ux]/i.test(written) && written.length > 2) return String.fromCharCode(Number.parseInt(written.slice(2), 16));
  if (written.startsWith("\\")) return written.slice(1);
  const code = /^&#x/i.test(written) ? Number.parseInt(written.slice(3), 16) : Number.parseInt(written.slice(2), 10);
  return code <= 0x10ffff ? String.fromCodePoint(code) : written;
}
