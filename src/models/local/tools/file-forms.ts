/** How a person names files and lists: sources of regular expressions. English only. */
import { TEXT_FILE } from "../../../lib/questions.ts";

export const NAME = `[\\w-]+(?:[/.][\\w-]+)*${TEXT_FILE}`;
/** "A file called guests.md". In these sources of regular expressions, a space is one or more of any kind. */
export const FILE = `(?:(?:an?|the|my|your|our|this) )?(?:new )?(?:text )?(?:(?:file|document|note) )?(?:(?:called|named) )?["'“‘\`]?(?<file>${NAME})["'”’\`]?`;
export const OWN = "(?:my|the|our|your) (?:[\\w-]+ ){0,3}";
export const TO_FILE = FILE.replace("(?<file>", "(?<by>");
/** "My shopping list" */
export const LIST = `(?<file>${OWN}(?:list(?: (?:of|for) [\\w-]+)?|to-?dos?|tasks|groceries|errands))`;
/** "My notes about Oslo" */
export const DOCUMENT = `(?<file>${OWN}(?:files?|lists?|notes?|recipes?|documents?)(?: (?:about|for|of|on) [\\w-]+(?: (?!called |named |to |as |into )[\\w-]+)?)?)`;
export const INTO = "(?:down )?(?:in|into|inside|to|as|on|under)";
export const AT_END = "(?:at|to) the (?:end|bottom) of";

/** At the beginning, with any white space for each space. */
export function spaced(source: string): RegExp {
  return new RegExp(`^${source.replaceAll(" ", "\\s+")}`, "isu");
}
