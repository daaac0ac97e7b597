/** How a person names files and lists: sources of regular expressions. English only. */
import { TEXT_FILE } from "../../../lib/questions.ts";

const PART = "[\\p{L}\\p{N}_-]+";
/** "notes/oslo" */
const PLAIN = `${PART}(?:[/.]${PART})*`;
/** "Shopping List": of what is not quoted, only words with capitals belong to a name together. */
const TITLE = "(?-i:\\p{Lu})[\\p{L}\\p{N}_-]*(?: (?-i:[\\p{Lu}\\p{N}])[\\p{L}\\p{N}_-]*)+";
export const NAME = `(?:(?<=["'“‘\`])${PLAIN}(?: ${PART})+|${TITLE}|${PLAIN})${TEXT_FILE}`;
/** Somewhere in a message, where a title may follow a verb with a capital. */
export const NAME_WITHIN = `(?<![\\p{L}\\p{N}_/.-])(?:(?<=(?-i:\\p{Ll}) |["“])${TITLE}|${PLAIN})${TEXT_FILE}\\b`;
/** "A file called guests.md". In these sources of regular expressions, a space is one or more of any kind. */
export const FILE = `(?:(?:an?|the|my|your|our|this) )?(?:new )?(?:text )?(?:(?:file|document|note) )?(?:(?:called|named) )?["'“‘\`]?(?<file>${NAME})["'”’\`]?`;
export const OWN = `(?:my|the|our|your) (?:${PART} ){0,3}`;
export const TO_FILE = FILE.replace("(?<file>", "(?<by>");
/** "My shopping list" */
export const LIST = `(?<file>${OWN}(?:list(?: (?:of|for) ${PART})?|to-?dos?|tasks|groceries|errands))`;
/** "My notes about Oslo" */
export const DOCUMENT = `(?<file>${OWN}(?:files?|lists?|notes?|recipes?|documents?)(?: (?:about|for|of|on) ${PART}(?: (?!called |named |to |as |into )${PART})?)?)`;
/** "The minutes", "our plan" */
export const PAPER = `(?<file>${OWN}(?:minutes|agenda|plan|diary|journal|log|faq|menu|schedule|budget))`;
export const INTO = "(?:down )?(?:in|into|inside|to|as|on|under)";
export const AT_END = "(?:at|to) the (?:end|bottom) of";

/** At the beginning, with any white space for each space. */
export function spaced(source: string): RegExp {
  return new RegExp(`^${source.replaceAll(" ", "\\s+")}`, "isu");
}
