/** Deeds that a model claims in its own words: where it writes, no tool has run, so none of them was done. English only. */
import { QUESTION } from "../../lib/questions.ts";

const DEEDS =
  "add|remove|delete|clear|save|store|note|write|check|uncheck|tick|mark|update|change|move|sort|rename|send|order|book|reserve|buy|call|text|forward|remind|schedule|set|cancel|search|look up";
/** The person asks for something to be done; what is to be put into words is done by the words. */
const ASKS = new RegExp(`\\b(?:${DEEDS}|put|forget|undo|empty|file|list|notes?)\\b`, "i");
const ASKS_FOR_WORDS =
  /\b(?:draft|compose|rewrite|rephrase|reword|translate|correct|fix|summari[sz]e|story|poem|dialogue|essay|speech|example|sentence|code|function|how (?:do|can|to|should))\b|\bwrite (?:me |us )?(?:an?|the|some|\d+)\b|\bwrite to\b/i;
/** Of a tool, as answer.ts passes it. */
const RESULT = /^Result of a tool:/;
const DONE =
  "added|removed|deleted|cleared|saved|stored|noted|written|checked|unchecked|ticked|marked|updated|changed|moved|sorted|renamed|sent|ordered|booked|reserved|bought|called|texted|forwarded|reminded|scheduled|set|cancelled|canceled|searched|looked up";
const DOING =
  "adding|removing|deleting|clearing|saving|storing|noting|writing|checking|unchecking|ticking|marking|updating|changing|moving|sorting|renaming|sending|ordering|booking|reserving|buying|calling|texting|forwarding|reminding|scheduling|setting|cancelling|canceling|searching|looking up";
const ALSO = "(?: (?:just|also|now|already|gladly|happily|then))?";
const CLAIM = new RegExp(
  `\\b(?:has|have) been (?:${DONE})\\b|\\bI(?:(?: have|['’]ve)${ALSO} (?:${DONE})|${ALSO} (?:${DONE.replace("|set|", "|")})|(?: will|['’]ll| can${ALSO} now)${ALSO} (?:${DEEDS})|(?: am|['’]m)${ALSO} (?:going to (?:${DEEDS})|${DOING}))\\b`,
);
/** It may become a claim with its next words. */
const HALF_CLAIM = new RegExp(
  `\\bI(?:['’]\\w*| have| will| am| can)?${ALSO}(?: (?:going(?: to)?|\\p{Ll}*))?\\s*$`,
  "u",
);

/** For a request that no tool has done. */
export const asksForDeed = (question: string): boolean =>
  ASKS.test(question) && !ASKS_FOR_WORDS.test(question) && !QUESTION.test(question.trim()) && !RESULT.test(question);

export const claimsDeed = (text: string): boolean => CLAIM.test(text);

/** Where the text may begin to claim a deed; its length if it does not. */
export const halfClaim = (text: string): number => HALF_CLAIM.exec(text)?.index ?? text.length;

/** Said where every answer would be such a claim. */
export const NOTHING_DONE =
  "I have not done anything: I can write, extend and delete files and lists, but only if I understand which, and I cannot send, order or book.";
