/**
 * What a person asks to be written, noted or deleted, by the forms that such requests have. The names and the words are
 * the person's: there is nothing to choose, so the model is not asked. English only.
 */
import { PLEASE } from "../../../lib/questions.ts";
import { withoutGreeting } from "./details.ts";

export type Deed =
  | { does: "remember"; text: string }
  | { does: "write"; name: string; text: string }
  /** The model composes what is to be written, as an answer to the request. */
  | { does: "compose"; name: string; request: string }
  /** `file` is a name, or what the person calls it: "my shopping list". */
  | { does: "add"; file: string; text: string }
  | { does: "take"; file: string; item: string }
  | { does: "delete"; file: string }
  /** What was noted or said about something is looked up; about all, without a text. */
  | { does: "recall"; about: string | null }
  /** A file is to be changed, but it is not plain how. */
  | { does: "unknown" };

/** In UTF-16 code units: a longer message is a text of its own. */
const LONG = 2_000;

export const NAME = "[\\w-]+(?:[/.][\\w-]+)*\\.(?:md|txt|csv|json|ya?ml|html)";
/** "A file called guests.md". In these sources of regular expressions, a space is one or more of any kind. */
const FILE = `(?:(?:an?|the|my|your|our|this) )?(?:new )?(?:text )?(?:(?:file|document|note) )?(?:(?:called|named) )?["'“‘\`]?(?<file>${NAME})["'”’\`]?`;
const OWN = "(?:my|the|our|your) (?:[\\w-]+ ){0,3}";
/** "My shopping list" */
const LIST = `(?<file>${OWN}list(?: (?:of|for) [\\w-]+)?)`;
/** "My notes about Oslo" */
const DOCUMENT = `(?<file>${OWN}(?:files?|lists?|notes?|recipes?|documents?)(?: (?:about|for|of|on) [\\w-]+(?: [\\w-]+)?)?)`;
const INTO = "(?:down )?(?:in|into|inside|to|as|on|under)";
const AT_END = "(?:at|to) the (?:end|bottom) of";
const SAVE = "(?:write|save|store|put|record|note|jot)(?: down)?";
const THIS = "(?:(?:this|that|these|the following)(?: (?:text|lines?|words?|list|note))? )?";
const SAYS =
  "(?:with|containing|saying|listing|(?:that|which) (?:says?|lists?|contains?|reads?|has)|and (?:write|put)(?: in(?:to)? it)?)\\b:?";
const NOTE = "(?:an?|my|your) (?:notes?|reminder|memo)";
const IN_NOTE = "(?: (?:in|into|to) (?:a|my|your) notes?)?";
const IN_MEMORY = "your (?:memory|memories|notes)";
const TELL = "(?:(?:did )?(?:i|we) (?:say|said|tell you|told you)|have (?:i|we) (?:said|told you))";
const REMEMBER = "(?:do you (?:still )?remember|have you noted|did you note)";
const COLON = "\\s*[:\\n]\\s*";
const END = "(?:,? (?:please|thanks|thank you|for me))*[\\s.!]*$";
const ASKED = "[\\s?.!]*$";
/** "My birthday is on 3 May", but not "my love". */
const STATEMENT =
  "(?:my|our|i|we)\\b[^?]*?\\b(?:is|are|am|was|were|ha[sd]|have|likes?|loves?|prefers?|lives?|works?|hates?|needs?|goes|starts|ends|comes|leaves)\\b[^?]+";

type Groups = Record<"file" | "text", string>;
const write = ({ file, text }: Groups): Deed => writing(file, text);
const add = ({ file, text }: Groups): Deed => ({ does: "add", file, text });
const note = ({ text }: Groups): Deed | null => (text.endsWith("?") ? null : { does: "remember", text: bare(text) });
const recall = ({ text }: Groups): Deed => ({ does: "recall", about: text });

/** The first that fits counts. */
const FORMS = [
  // "Write a poem about the sea and save it as sea.md"
  form(
    `(?<text>\\S.{3,}?),? (?:and|then) (?:then )?${SAVE} (?:it|this|that|them|the \\w+) ${INTO} ${FILE}${END}`,
    ({ file, text }) => ({ does: "compose", name: file, request: text }),
  ),
  // "Save this in ideas.txt: a garden on the roof", "Create a file called names.md with Tom and Eva"
  form(`${SAVE} ${THIS}${INTO} ${FILE}${COLON}(?<text>.+)$`, write),
  form(`(?:create|make|write|start|i need|i want|new) ${FILE}(?:${COLON}|,? ${SAYS}\\s*)(?<text>.+?)${END}`, write),
  // "Add butter to my shopping list", "Put eggs on the list", "Write 'Call Eva' at the end of todo.md"
  ...[FILE, LIST].flatMap((file) => [
    form(`(?:add|append|include|enter) (?<text>.+?) (?:${INTO}|onto|${AT_END}) ${file}${END}`, add),
    form(`(?:put|write|note) (?<text>.+?) ${AT_END} ${file}${END}`, add),
  ]),
  form(`(?:put|write|note) (?<text>.+?) (?:${INTO}|onto) ${LIST}${END}`, add),
  // "Take the lemons off my shopping list"
  ...[FILE, LIST].map((file) =>
    form(
      `(?:remove|delete|take|cross|strike|drop) (?:out )?(?<text>.+?) (?:from|off|out of) ${file}${END}`,
      (found) => ({ does: "take", file: found.file, item: bare(found.text) }),
    ),
  ),
  // "Write 'Buy milk' into milk.md", "Create notes.md", "Delete my notes about Oslo"
  form(`${SAVE} (?<text>.+?) ${INTO} ${FILE}${END}`, write),
  form(`(?:create|make|start) (?:an empty )?${FILE}${END}`, ({ file }) => ({ does: "write", name: file, text: "" })),
  ...[FILE, DOCUMENT].map((file) =>
    form(`(?:delete|remove|erase|get rid of) ${file}${END}`, (found) => ({ does: "delete", file: found.file })),
  ),
  // "Put this into a note: water the plants", "Remember that I prefer tea", "Make a note to call the bank"
  form(`${SAVE} ${THIS}${INTO} ${NOTE}${COLON}(?<text>.+)$`, note),
  form(
    "(?:remember|(?:keep|bear) in mind|note(?: down)?|(?:write|jot) down|(?:don['’]?t|do not|never) forget)" +
      `(?: (?:this|the following))?(?:,? that |${COLON})(?<text>\\S.*)$`,
    note,
  ),
  form(`(?:remember|(?:don['’]?t|do not) forget) (?<text>${STATEMENT})$`, note),
  form(`(?:make|take|put|leave|add) ${NOTE} (?:to|of|about) (?<text>\\S.*?)${IN_NOTE}${END}`, note),
  form(
    `(?:make|take|put|leave|add|write) ${NOTE}(?: (?:(?:that|which) says|saying)\\b:?\\s*|${COLON}| that )(?<text>\\S.*)$`,
    note,
  ),
  // "What have you noted?", "What did I tell you about the plumber?", "Search your memory for the wifi"
  form(
    `what (?:${REMEMBER}|${TELL}|do you know about (?:me|us)|(?:is|stands) in ${IN_MEMORY})(?: about (?:me|us|myself))?(?: so far)?${ASKED}`,
    () => ({ does: "recall", about: null }),
  ),
  form(
    `(?:do you (?:still )?(?:remember|know) )?what (?:${TELL}|${REMEMBER}|do your notes say|do you know(?= about (?:my|our)\\b)) about (?<text>.+?)${ASKED}`,
    recall,
  ),
  form(`(?:search|check|look (?:in|into|through)) ${IN_MEMORY} (?:for|about) (?<text>.+?)${ASKED}`, recall),
  form(
    `(?:(?:is there|do you have) (?:anything|something|any notes?) (?:in ${IN_MEMORY}|noted)|have you noted (?:anything|something)) about (?<text>.+?)${ASKED}`,
    recall,
  ),
];

function form(source: string, deed: (groups: Groups) => Deed | null) {
  const pattern = new RegExp(`^${source.replaceAll(" ", "\\s+")}`, "is");
  return (asked: string): Deed | null => {
    const found = pattern.exec(asked);
    return found === null ? null : deed({ file: found.groups?.file ?? "", text: found.groups?.text ?? "" });
  };
}

const BEFORE = new RegExp(
  `${PLEASE}(?:(?:i (?:want|need|would like)|i['’]d like) you to )?(?:(?:please|just|now|also)\\W+)*`,
  "i",
);
const CHANGES = new RegExp(
  `^(?:write|save|store|put|create|make|append|add|delete|remove|erase|rename|move|copy|edit|change|update|replace|overwrite|insert)\\b.*(?<![\\w/.-])${NAME}\\b`,
  "is",
);

/** Null if the message asks for nothing of the kind. */
export function deedIn(message: string): Deed | null {
  if (message.length > LONG) return null;
  const whole = withoutGreeting(message);
  const before = BEFORE.exec(whole)?.[0] ?? "";
  const rest = whole.slice(before.length).trim();
  const asked = /\b(?:can|could|will|would)\b/i.test(before) ? rest.replace(/\?+$/, "") : rest;
  for (const deedOf of FORMS) {
    const deed = deedOf(asked);
    if (deed !== null) return deed;
  }
  return CHANGES.test(asked) && !asked.endsWith("?") ? { does: "unknown" } : null;
}

/** "A short poem about the sea": not the words themselves. */
const WORK =
  /^(?:[\w'’-]+\s+){1,3}?(?:poems?|haikus?|limericks?|story|stories|tales?|jokes?|letters?|e-?mails?|essays?|songs?|recipes?|summary|descriptions?|speech|paragraphs?|lists? of|ideas|tips|facts?|introduction|invitation|explanation|plan for|text about)\b/i;

function writing(name: string, said: string): Deed {
  const text = said.replace(/\s+in(?:side)?(?:\s+it)?$/i, "");
  if (/^(?:it|this|that|them|these|those)$/i.test(text)) return { does: "unknown" };
  return WORK.test(text)
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
  return /[.!?]\s/.test(text) || text.includes("\n") ? text : text.replace(/[.!]+$/, "");
}

/** "Eggs, milk and bread" are three; what is quoted is one. */
export function itemsOf(said: string): readonly string[] {
  const text = said.trim();
  if (QUOTED.test(text)) return [bare(text)];
  return text
    .split(/\s*,\s*(?:and\s+)?|\s+and\s+|\n+/i)
    .map(bare)
    .filter((item) => item !== "");
}
