import type { InSlices } from "../limits/slices.ts";
import { createRewriting, type Rewritten } from "./rewriting.ts";

/** A text whose lines of base64 and hexadecimal are one line each. */
export interface Joined extends Rewritten {
  /** Where something may begin that goes on behind a line break which is no longer there. */
  places: readonly [start: number, end: number][];
}

/** With fewer characters before its end, a line ends in a word like others: encoders write 60 and more. */
const MIN_LINE = 16;
/** How many line breaks are looked at at a time. */
const PART = 256;

/** By codes of characters: those of both kinds of base64, and so of hexadecimal. None stands behind `=`, which ends base64. */
const ENCODED = new Uint8Array(128);
for (const one of Buffer.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")) ENCODED[one] = 1;
const isEncoded = (code: number): boolean => ENCODED[code] === 1;

const [TAB, SPACE, RETURN, NEWLINE] = [9, 32, 13, 10];
const isSpace = (code: number): boolean => code === SPACE || code === NEWLINE || code === RETURN || code === TAB;

/** Leaves out the line breaks, with the spaces around them, inside of what encoders write in lines; null if there are none. */
export async function joinLines(text: string, inSlices: InSlices): Promise<Joined | null> {
  if (!text.includes("\n")) return null;
  const rewriting = createRewriting(text);
  const places: [start: number, end: number][] = [];
  /** Where the line begins that is looked at. */
  let line = 0;
  let isContinued = false;
  const joinSome = (): "more" | "end" => {
    for (let count = 0; count < PART; count++) {
      const lineBreak = text.indexOf("\n", line);
      if (lineBreak < 0) return "end";
      let [end, next] = [lineBreak, lineBreak + 1];
      while (end > line && isSpace(text.charCodeAt(end - 1))) end--;
      while (isSpace(text.charCodeAt(next))) next++;
      let start = end;
      while (start > line && isEncoded(text.charCodeAt(start - 1))) start--;
      const isJoined = end - start >= MIN_LINE && isEncoded(text.charCodeAt(next));
      if (isJoined) {
        const at = rewriting.replace(end, next, "");
        const before = places.at(-1);
        if (before && isContinued && start === line) before[1] = at;
        else places.push([at - (end - start), at]);
      }
      [line, isContinued] = [next, isJoined];
    }
    return "more";
  };
  while ((await inSlices(joinSome)) === "more");
  return rewriting.isUnchanged() ? null : { ...(await inSlices(rewriting.finish)), places };
}
