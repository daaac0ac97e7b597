/** Deeds that a model claims in its own words: where it writes, no tool has run, so none of them was done. English only. */
import { QUESTION } from "../../lib/questions.ts";

const DEEDS =
  "add|append|insert|put|remove|delete|take|clear|save|store|note|write|check|uncheck|tick|mark|update|change|replace|move|sort|rename|create|restore|send|order|book|reserve|buy|call|text|forward|remind|schedule|set|cancel|search|look up";
/** The person asks for something to be done, or whether it was; what is to be put into words is done by the words. */
const ASKS = new RegExp(
  `\\b(?:${DEEDS.replace("|take", "")}|forget|undo|empty|file|list|notes?|calendar|take .{1,40} (?:off|out|from)|did you (?:really |actually )?(?:${DEEDS}))\\b|\\bdid you\\W*$`,
  "i",
);
const ASKS_FOR_WORDS =
  /\b(?:draft|compose|rewrite|rephrase|reword|translate|correct|fix|summari[sz]e|story|poem|dialogue|essay|speech|example|sentence|code|function|how (?:do|can|to|should))\b|\bwrite (?:me |us )?(?:an?|the|some|\d+)\b|\bwrite to\b/i;
/** Of a tool, as answer.ts passes it. */
const RESULT = /^Result of a tool:/;
const DONE =
  "added|appended|inserted|removed|deleted|taken|cleared|saved|stored|noted|written|checked|unchecked|ticked|marked|updated|changed|replaced|moved|sorted|renamed|created|restored|sent|ordered|booked|reserved|bought|called|texted|forwarded|reminded|scheduled|set|cancelled|canceled|searched|looked up";
const DOING =
  "adding|appending|inserting|putting|removing|deleting|taking|clearing|saving|storing|noting|writing|checking|unchecking|ticking|marking|updating|changing|replacing|moving|sorting|renaming|creating|restoring|sending|ordering|booking|reserving|buying|calling|texting|forwarding|reminding|scheduling|setting|cancelling|canceling|searching|looking up";
const ALSO = "(?: (?:just|also|now|already|gladly|happily|then))?";
/** What only a tool could have brought about: "The bread is taken off", "The plan is no longer there". */
const STATE =
  "(?:(?:now|also|already) )?(?:added|appended|removed|deleted|cleared|saved|stored|updated|replaced|renamed|restored|sent|ordered|booked|reserved|scheduled|cancelled|canceled|(?:put|taken) (?:back|on|off|out)|(?:checked|crossed|ticked) off|no longer (?:there|available|on|in))";
/** What this model has no tool for. */
const CANNOT = "remind|schedule|set|send|order|book|reserve|buy|call|text|forward|cancel";
const CARE = "(?:make|be) sure(?: to| that)?";
const CLAIM = new RegExp(
  [
    `(?:has|have) been (?:${DONE})`,
    `I(?: have|['’]ve)${ALSO} (?:${DONE})`,
    `I${ALSO} (?:${DONE.replace("|set|", "|").replace("|taken|", "|took|")})`,
    `I did(?: (?:indeed )?(?:${DEEDS})|(?=[.,!]))`,
    `I(?: will|['’]ll| can${ALSO} now)${ALSO} (?:${DEEDS}|${CARE})`,
    `I can${ALSO} (?:${CANNOT})`,
    `I(?: am|['’]m)${ALSO} (?:going to (?:${DEEDS})|${DOING})`,
    `(?:is|are|was|were) ${STATE}`,
  ]
    .map((one) => `\\b${one}(?![\\p{L}\\p{N}])`)
    .join("|"),
  "u",
);
/** It may become a claim with its next words. */
const HALF_CLAIM = new RegExp(
  `\\bI(?:['’]\\w*| have| will| am| can| did)?${ALSO}(?: (?:going(?: to)?|make|be|\\p{Ll}*))?\\s*$` +
    "|\\b(?:is|are|was|were)(?: (?:now|also|already))?(?: (?:put|taken|checked|crossed|ticked|no(?: longer)?))?(?: \\p{Ll}*)?\\s*$",
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
