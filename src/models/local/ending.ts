/** Where an answer ends, and how. Pure functions of its text so far. */
import { sentenceEnds } from "../../lib/words.ts";
import type { LengthWish } from "./length-wish.ts";

type Length = Pick<LengthWish, "sentences" | "items">;

/** How a letter ends: a small model goes on and speaks of the letter. */
const SIGNED =
  /\n(?:yours|sincerely|(?:best|kind|warm)(?:est)? (?:regards|wishes)|regards|(?:with )?love|warmly)\b[^\n.!?]{0,20}\n+[^\n]{1,40}(?=\n)/i;
/** A last line of four words or more without punctuation, as a poem has it. */
const OPEN_LINE = /(?:^|\n)(?:[\p{L}'’]+,? ){3,}[\p{L}'’]*\p{L}$/u;

/** An item of a numbered list. */
const ITEM = /^ *\d+[.)] +\S.*/gm;
const FENCE = /^ *```/gm;

/**
 * The offset of the end: at a stop string, after a letter's signature, or after the number of sentences or items that
 * was asked for; null if the answer continues.
 */
export function endOfAnswer(text: string, stop: readonly string[], wish: Length): number | null {
  const signed = SIGNED.exec(text);
  const stops = stop.map((one) => text.indexOf(one)).filter((at) => at >= 0);
  const signature = signed === null ? [] : [signed.index + signed[0].length];
  const items = itemsOf(text, wish);
  const ends = items.length > 0 ? items : sentenceEnds(text).filter((end) => isWhole(text.slice(0, end)));
  const most = items.length > 0 ? wish.items : wish.sentences;
  // Something must follow the sentence: "3." may become "3.5".
  const last = ends.filter((end) => end < text.length).at(most - 1);
  const places = [...stops, ...signature, ...(ends.length >= most && last !== undefined ? [last] : [])];
  return places.length === 0 ? null : Math.min(...places);
}

const endsInCode = (text: string): boolean => (text.match(FENCE) ?? []).length % 2 === 1;
const isWhole = (text: string): boolean => text.trim() !== "" && !endsInCode(text);

/** Where the items end, if so many were asked for and the text lists them. */
const itemsOf = (text: string, { items }: Length): number[] =>
  items === 0 ? [] : [...text.matchAll(ITEM)].map(({ index, 0: item }) => index + item.length);

/** Whether a text that its writer takes for complete has too few sentences or items. */
export function endsTooSoon(text: string, wish: Length & Pick<LengthWish, "least">): boolean {
  const items = itemsOf(text, wish);
  return items.length > 0 ? items.length < wish.items : sentenceEnds(text).length < wish.least;
}

/** What the end of an answer lacks: the mark after its code, or the period of a poem's last line. */
export function closingOf(text: string): string {
  if (endsInCode(text)) return "\n```";
  return OPEN_LINE.test(text) ? "." : "";
}

/** Whether the text ends within a sentence. */
export const breaksOff = (text: string): boolean => (sentenceEnds(text.trimEnd()).at(-1) ?? 0) < text.trimEnd().length;
