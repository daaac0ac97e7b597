/**
 * What a person asks to be written, noted or deleted, by the forms that such requests have. The names and the words are
 * the person's: there is nothing to choose, so the model is not asked. English only.
 */
import { asksForWork, isStatement } from "../../../lib/questions.ts";
import { sentencesOf } from "../../../lib/words.ts";
import type { Deed } from "./deed.ts";
import { FORMS, LONG_FORMS, namedForAbove } from "./deed-forms.ts";
import { withoutGreeting } from "./details.ts";
import { NAME, spaced } from "./file-forms.ts";
import { LONG, verbatim } from "./given-words.ts";

/** A message that says where the text after it is to be written. In UTF-16 code units. */
const MAX_WRITTEN = 100_000;

const GREETING = "(?:(?:hello|hi|hey|dear|good (?:morning|afternoon|evening))\\b(?: \\p{L}+)?\\s*[,.!:-]\\W*)?";
const FILLER =
  "(?:hello|hi|hey|yes|yeah|yep|no|ok(?:ay)?|sure|alright|all right|great|good|nice|perfect|cool|thanks|thank you|and|then|so|now|also|just|next|kindly|please|pls|plz|let['’]?s|(?:can|could|will|would) you)\\b\\W+";
/** What may come before a request: "Great! And could you please". */
const BEFORE = new RegExp(
  `^\\W*${GREETING}(?:${FILLER})*(?:(?:i (?:want|need|would like)|i['’]d like) (?:you )?to )?(?:${FILLER})*`,
  "iu",
);
/** A file or a list is to be changed: in its own words, the model would claim to have done it. */
const CHANGES = [
  `(?:write|save|store|put|create|make|append|add|delete|remove|erase|rename|move|copy|edit|change|update|replace|overwrite|insert)\\b.*(?<![\\p{L}\\p{N}_/.-])${NAME}\\b`,
  "(?:clear|empty|rename|edit|change|update|replace|mark|tick|check off|delete|remove|erase) .*\\b(?:my|our|your) (?:[\\w-]+ ){0,2}(?:list|files?|notes)\\b",
  "(?:add|put|uncheck|untick|unmark|check|tick|sort|move|undo) .*\\b(?:my|our|your) (?:[\\w-]+ ){0,2}(?:list|to-?dos?|files?|notes)\\b",
  "(?:add|put) .*\\b(?:to|on|onto) the (?:[\\w-]+ ){0,2}(?:list|file)\\b",
  "(?:uncheck|untick|unmark) \\w",
  "append:\\s*\\S",
  "(?:create|make|write|start)(?: an?| the)?(?: new| empty)* (?:file|document)\\W*$",
  "(?:delete|remove|erase) (?:(?:all|everything|every)\\b|(?:it|that|this|them)\\W*$)",
  "(?:save|store) (?:it|that|this|them)\\W*$",
].map(spaced);
const FORGETS = /^forget\s+(?:(?:that|what)\s+(?:i|we|my|our)|everything|all|my|our)\b/i;

/** Null if the message asks for nothing of the kind. */
export function deedIn(message: string): Deed | null {
  if (message.length > MAX_WRITTEN) return null;
  const whole = withoutGreeting(message);
  const deed = writtenAbove(whole) ?? deedOf(whole);
  if (deed !== null || message.length > LONG) return deed;
  // "We have no milk. Add it to my list, please."
  const [first = "", ...others] = sentencesOf(whole);
  const last = others.at(-1);
  return last === undefined || !isStatement(first) ? null : deedOf(last);
}

/** "- Dune\n- Emma\nPlease save this as books.md": the text, or the request for it, comes first. */
function writtenAbove(whole: string): Deed | null {
  const last = whole.includes("\n") || whole.length > LONG ? lastLineOf(whole) : (sentencesOf(whole).at(-1) ?? "");
  const above = whole.slice(0, whole.length - last.length).trim();
  const name = above === "" || last.length > LONG ? undefined : namedForAbove(withoutBefore(last));
  if (name === undefined || LONG_FORMS.some((deedBy) => deedBy(withoutBefore(whole)) !== null)) return null;
  return asksForWork(above) ? { does: "compose", name, request: above } : verbatim(name, above);
}

const lastLineOf = (text: string): string => text.slice(text.lastIndexOf("\n") + 1);
const withoutBefore = (request: string): string => request.slice(BEFORE.exec(request)?.[0].length ?? 0).trim();

function deedOf(request: string): Deed | null {
  const before = BEFORE.exec(request)?.[0] ?? "";
  const rest = request.slice(before.length).trim();
  const asked = /\b(?:can|could|will|would)\b/i.test(before) ? rest.replace(/\?+$/, "") : rest;
  const isLong = request.length > LONG;
  // Between words that may be anything, a form tries every part of every gap.
  const inWords = asked.replace(/[^\S\n]{2,}/g, " ").replace(/\s{3,}/g, "\n\n");
  for (const deedBy of isLong ? LONG_FORMS : FORMS) {
    const deed = deedBy(LONG_FORMS.includes(deedBy) ? asked : inWords);
    if (deed !== null) return deed;
  }
  if (isLong) return null;
  if (FORGETS.test(asked)) return { does: "forget", about: null };
  return CHANGES.some((one) => one.test(asked)) && !asked.endsWith("?") ? { does: "unknown" } : null;
}
