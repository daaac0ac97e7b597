/** Where an answer ends, and how. Pure functions of its text so far. */
import { sentenceEnds } from "../../lib/words.ts";
import type { LengthWish } from "./length-wish.ts";

/** How a letter ends: a small model goes on and speaks of the letter. */
const SIGNED =
  /\n(?:yours|sincerely|(?:best|kind|warm)(?:est)? (?:regards|wishes)|regards|(?:with )?love|warmly)\b[^\n.!?]{0,20}\n+[^\n]{1,40}(?=\n)/i;
/** A last line of four words or more without punctuation, as a poem has it. */
const OPEN_LINE = /(?:^|\n)(?:[\p{L}'’]+,? ){3,}[\p{L}'’]*\p{L}$/u;

/**
 * The offset of the end: at a stop string, after a letter's signature, or after the number of sentences that was asked
 * for; null if the answer continues.
 */
export function endOfAnswer(text: string, stop: readonly string[], wish: Pick<LengthWish, "sentences">): number | null {
  const signed = SIGNED.exec(text);
  const stops = stop.map((one) => text.indexOf(one)).filter((at) => at >= 0);
  const signature = signed === null ? [] : [signed.index + signed[0].length];
  const ends = sentenceEnds(text).filter((end) => text.slice(0, end).trim() !== "");
  // Something must follow the sentence: "3." may become "3.5".
  const last = ends.filter((end) => end < text.length).at(wish.sentences - 1);
  const places = [...stops, ...signature, ...(ends.length >= wish.sentences && last !== undefined ? [last] : [])];
  return places.length === 0 ? null : Math.min(...places);
}

/** Whether a poem's last line, at the end of this text, lacks its period. */
export const lacksPeriod = (text: string): boolean => OPEN_LINE.test(text);

/** Whether the text ends within a sentence. */
export const breaksOff = (text: string): boolean => (sentenceEnds(text.trimEnd()).at(-1) ?? 0) < text.trimEnd().length;
