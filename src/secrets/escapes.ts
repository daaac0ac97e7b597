import type { InSlices } from "../limits/slices.ts";
import { createRewriting, type Rewritten } from "./rewriting.ts";

/** A character in percent-encoded UTF-8. */
const PERCENT = [
  "%[0-7][0-9a-f]",
  "%[cd][0-9a-f]%[89ab][0-9a-f]",
  "%e[0-9a-f](?:%[89ab][0-9a-f]){2}",
  "%f[0-7](?:%[89ab][0-9a-f]){3}",
];
/** JSON and JavaScript; before punctuation, also Markdown. */
const BACKSLASH = ["\\\\u[0-9a-f]{4}", "\\\\x[0-9a-f]{2}", "\\\\[!-/:-@[-`{-~bfnrt]"];
/** Character references of HTML, whose numbers may begin with any number of zeros. */
const REFERENCE = [
  "&#(?=\\d)0*(?:[1-9]\\d{0,6})?;",
  "&#x(?=[0-9a-f])0*(?:[1-9a-f][0-9a-f]{0,5})?;",
  "&(?:amp|lt|gt|quot|apos);",
];
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
export async function undoEscapes(text: string, inSlices: InSlices): Promise<Rewritten | null> {
  const rewriting = createRewriting(text);
  const matches = text.matchAll(ESCAPES);
  const undoSome = (): "more" | "end" => {
    for (let count = 0; count < PART; count++) {
      const { value: match, done } = matches.next();
      if (done) return "end";
      rewriting.replace(match.index, match.index + match[0].length, meaning(match[0]));
    }
    return "more";
  };
  while ((await inSlices(undoSome)) === "more");
  return rewriting.isUnchanged() ? null : await inSlices(rewriting.finish);
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
