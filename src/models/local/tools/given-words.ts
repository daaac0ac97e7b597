/** The words that a person gives to be written or noted. */
import type { Deed } from "./deeds.ts";

/** "It", "our conversation": the words to write are not in the message. */
export const REFERS_BACK =
  /^(?:it|this|that|them|these|those|(?:the|this|that|our|your|my)\b.{0,30}\b(?:conversations?|chats?|answers?|repl(?:y|ies)|messages?|responses?|texts?|poems?|story|stories|haikus?|lists?|above))$/i;

/** "I like tea" for "I like tea, please." */
export const unasked = (text: string): string => text.replace(/,\s+(?:please|thanks|thank you)(?=[\s.!]*$)/i, "");

/** "A short poem about the sea": not the words themselves. */
const WORK =
  /^(?:[\w'’-]+\s+){1,3}?(?:poems?|haikus?|limericks?|story|stories|tales?|jokes?|letters?|e-?mails?|essays?|songs?|recipes?|summary|descriptions?|speech|paragraphs?|lists? of|ideas|tips|facts?|introduction|invitation|explanation|plan for|text about)\b/i;

export function writing(name: string, said: string): Deed {
  const text = said.replace(/\s+in(?:side)?(?:\s+it)?$/i, "");
  if (REFERS_BACK.test(text)) return { does: "unknown" };
  return WORK.test(text) && !text.includes(":")
    ? { does: "compose", name, request: `Write ${text}` }
    : { does: "write", name, text: bare(text) };
}

const QUOTED = /^["'“‘`](?<text>[^"“”`]+)["'”’`]$/;
const LED_IN = /^the\s+(?:text|words?|sentence|lines?|following|contents?)\b:?\s*/i;

/** What stands in quotes, if all does. The full stop of a request is not of what is written. */
export function bare(said: string): string {
  const text = said.trim().replace(LED_IN, "");
  const quoted = QUOTED.exec(text.replace(/[.!]$/, ""))?.groups?.text;
  if (quoted !== undefined) return quoted.trim();
  return /[.!?]\s/.test(text) || text.includes("\n") ? text : text.replace(/[.!,;]+$/, "");
}

/** "Eggs, milk and bread" are three; what is quoted is one. */
export function itemsOf(said: string): readonly string[] {
  const text = said.trim().replace(/^(?:an?|the) (?:line|item|entry|point|task) (?=["'“‘`])/i, "");
  if (QUOTED.test(text)) return [bare(text)];
  return text
    .split(/\s*,\s*(?:and\s+)?|\s+and\s+|\n+/i)
    .map((item) => bare(item.replace(/^(?:some|an?|the)\s+/i, "")))
    .filter((item) => item !== "");
}
