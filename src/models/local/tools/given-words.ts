/** The words that a person gives to be written or noted. */
import type { Deed } from "./deed.ts";
import { AT_END, FILE, INTO, LIST } from "./file-forms.ts";

/** In UTF-16 code units: what is longer is a text of its own. */
export const LONG = 2_000;

/** "It", "our conversation": the words to write are not in the message. */
const REFERS_BACK =
  /^(?:it|this|that|them|these|those|(?:the|this|that|our|your|my)\b.{0,30}\b(?:conversations?|chats?|answers?|repl(?:y|ies)|messages?|responses?|texts?|poems?|story|stories|haikus?|lists?|above))$/i;

/** "I like tea" for "I like tea, please." */
export const unasked = (text: string): string => text.replace(/,\s+(?:please|thanks|thank you)(?=[\s.!]*$)/i, "");

const NUMBER = "(?:\\d+|an?|some|a few|two|three|four|five|six|seven|eight|nine|ten)";
/** "A short poem about the sea", "three points": not the words themselves. */
const WORK = new RegExp(
  "^(?!(?:send|write|call|buy|read|answer|post|print|finish|pay|fix|find|get|learn|check)\\b)(?:(?:[\\w'’-]+\\s+){1,3}?(?:poems?|haikus?|limericks?|story|stories|tales?|jokes?|letters?|e-?mails?|essays?|songs?|recipes?|summary|descriptions?|speech|paragraphs?|lists? (?:of|for|with)|tables? (?:of|with)|ideas|tips|facts?|introduction|invitation|explanation|plan for|text about)" +
    `|${NUMBER} (?:[\\w-]+ )?(?:points|items|steps|reasons|questions|sentences|paragraphs|examples))\\b`,
  "i",
);
/** What only somebody who knows it could write. */
const UNSAID =
  /^(?:(?:(?:today|tomorrow|yesterday)['’]?s|the(?: current)?) (?:date|time|day|month|year|weather)(?: and (?:the )?(?:date|time|day|weather))?|my (?:(?:full|first|last) )?(?:name|birthday|age|address|e-?mail(?: address)?|(?:phone )?number)|(?:all )?(?:of )?(?:the )?ingredients (?:for|of|from)\b.*|(?:everything|all) (?:that )?(?:i|we) need(?: for\b.*)?)$/i;
export const QUOTATIONS = /["“][^"“”]*["”]|(?<!\w)['‘][^'‘’]*['’](?!\w)|`[^`]*`/g;
/** It goes on after the words: with another file, or with what is to be done then. */
const GOES_ON = [FILE, LIST]
  .map((file) => `\\b(?:${INTO}|onto|off|from|${AT_END}) ${file},? (?:and|then|but)\\b`)
  .concat(
    `\\b(?:and|,) ${FILE} (?:with|containing|saying)\\b`,
    "[,.;]? (?:and )?then (?:add|append|remove|delete|rename|copy|show me|show it|read it to me|tell me)\\b",
    " and (?:show (?:me|it|them)|read (?:it|them) to me|tell me)\\b",
  )
  .map((source) => new RegExp(source.replaceAll(" ", "\\s+"), "iu"));

export const isUnsaid = (text: string): boolean => REFERS_BACK.test(text) || UNSAID.test(text);

/** The deed with these words, if they are the words, and all of them. */
export function withWords(said: string, deed: Deed): Deed {
  if (GOES_ON.some((one) => one.test(said.replace(QUOTATIONS, "“”")))) return { does: "unknown", isSeveral: true };
  return isUnsaid(said) ? { does: "unknown" } : deed;
}

/** What is written as it stands, with its full stop: it came in quotes, or after "this:". */
export const verbatim = (name: string, said: string): Deed => ({ does: "write", name, text: unquoted(said.trim()) });

export function writing(name: string, said: string): Deed {
  if (said.length > LONG) return verbatim(name, said);
  const text = said
    .replace(/\s+in(?:side)?\s+it$/i, "")
    .replace(
      /^the\s+(?:text|words?|sentence|following)\s+(?!(?:of|in|on|from|to|for|is|are|was|were|that|which|you|i)\b)/i,
      "",
    );
  const isComposed = WORK.test(text) && !QUOTED.test(text) && !text.includes(":");
  return withWords(text, isComposed ? { does: "compose", name, request: `Write ${text}` } : verbatim(name, text));
}

/** All of it in one quotation: "‘a’ and ‘b’" are two. */
const QUOTED = /^["'“‘`](?!.*(?<!\w)['‘]\w)(?<text>[^"“”`]+)["'”’`]$/s;
/** "The sentence" before “It rains”, or before a colon. */
const LED_IN = /^the\s+(?:text|words?|sentence|lines?|following|contents?)\s*(?::\s*|(?=["'“‘`]))/i;

/** What stands in quotes, if all does. */
function unquoted(said: string): string {
  const text = said.replace(LED_IN, "");
  return QUOTED.exec(text.replace(/[.!]$/, ""))?.groups?.text?.trim() ?? text;
}

/** The full stop of a request is not of what is written. */
export function bare(said: string): string {
  const text = unquoted(said.trim());
  return /[.!?]\s/.test(text) || text.includes("\n") ? text : text.replace(/(?<![.!,;])[.!,;]+$/, "");
}

/** No comma of a number, and no "and" between names that belong together: "call Tom and Eva". */
const BETWEEN_ITEMS =
  /\s*(?:(?<!\d),|,(?!\d))\s*(?:and\s+)?|\s+and\s+(?<!\b(?:with|for|to|from|about|of|call|meet|ask|tell|e-?mail|visit|see|invite|text|ring|phone|thank|pay)\s+(?-i:\p{Lu})\p{L}*\s+and\s+(?=(?-i:\p{Lu}))|\bbetween\s+\S+\s+and\s+)|\n+/iu;

/** "Eggs, milk and bread" are three; what is quoted is one. */
export function itemsOf(said: string): readonly string[] {
  const text = said
    .trim()
    .replace(/,?\s+(?:please|pls|plz)$/i, "")
    .replace(/^(?:an?|the) (?:line|item|entry|point|task) (?=["'“‘`])/i, "");
  if (QUOTED.test(text)) return [bare(text)];
  return text
    .split(BETWEEN_ITEMS)
    .map((item) => bare(item.replace(/^(?:some|an?|the)\s+/i, "")))
    .filter((item) => item !== "");
}
