/** The forms that requests for deeds have. English only. */
import type { Deed } from "./deed.ts";
import { AT_END, DOCUMENT, FILE, INTO, LIST, PAPER, spaced, TO_FILE } from "./file-forms.ts";
import { bare, isUnsaid, unasked, verbatim, withWords, writing } from "./given-words.ts";

const SAVE = "(?:write|save|store|put|record|note|jot)(?: down)?";
/** "This recipe", "the list below" */
const THIS =
  "(?:(?:this|that|these|the following)(?: (?!(?:in|into|to|as|on|under) )[\\w-]+){0,4}|(?:the|my) (?:[\\w-]+ ){1,3}below) ";
const SAYS =
  "(?:with|containing|saying|listing|(?:that|which) (?:says?|lists?|contains?|reads?|has)|(?:and )?(?:write|put)(?: in(?:to)? it)?)\\b:?";
const NOTE = "(?:an?|my|your|this) (?:notes?|reminder|memo)";
const IN_NOTE = "(?: (?:in|into|to) (?:a|my|your) notes?)?";
const MY_DOCUMENT = DOCUMENT.replace("my|the|our|your", "my|our|your");
const DONE = "(?:done|bought|completed?|finished|paid|got|(?:checked|ticked)(?: off)?)";
const ALL_ITEMS = "(?:everything|all(?: of)?(?: the)? (?:items|entries|tasks|lines|points|things))";
const TO_ME = "(?: (?:to me|aloud|out))?(?: (?:from|in) (?:my|your) (?:files|notes|workspace))?";
const IN_FOLDER =
  "(?: (?:in|of) (?:(?:the|your|my) folder(?: (?:called|named))? (?<file>[\\w/-]+)|(?:the |your |my )?(?:workspace|here)))?";
const IN_MEMORY = "your (?:memory|memories|notes)";
const ALL_FILES = "(?:all )?(?:(?:of )?(?:my|our|your|the) )?(?:files|documents|workspace|notes)";
const TELL = "(?:(?:did )?(?:i|we) (?:say|said|tell you|told you)|have (?:i|we) (?:said|told you))";
const FORGET = "(?:you (?:can|may|should) )?(?:now )?forget(?: that)?";
const REMEMBER = "(?:do you (?:still )?remember|have you noted|did you note)";
const DELETE = "(?:delete|remove|erase|get rid of|rm|trash|bin|throw (?:away|out))";
/** "Delete plan.md please, I don't need it any more" */
const NOT_NEEDED =
  "(?:(?:,? please)?[,;.]? (?:i|we) (?:don['’]?t|do not|no longer) (?:need|want|use) (?:it|that|this)(?: any ?more| now)?)?";
const COLON = "(?:[^\\S\\n]*(?:[?.!][^\\S\\n]*)?[:\\n]\\s*|\\?\\s+)";
const LACK =
  "(?:i|we)(?:['’](?:m|re|ve)| am| are| have)? (?:(?:also|still|just) )?(?:need|want|would like|lack|out of|run out of|have no|have no more|forgot|need to buy)(?: some| more| an?)?";
const ASK = "(?:(?:so|please|pls|now|then|just|can you|could you) )*";
const END = "(?:,? (?:please|pls|plz|thanks|thank you|thx|for me))*[\\s.!]*$";
const ASKED = "(?:,? (?:please|pls|plz|thanks|thank you|thx))*[\\s?.!]*$";
const VERB =
  "(?:is|are|was|were|ha[sd]|likes?|loves?|prefers?|lives?|works?|hates?|needs?|wants?|goes|starts|ends|comes|leaves|plays|drinks|eats|speaks)";
/** "My birthday is on 3 May", "Tom's birthday is 7 June", but not "my love". */
const NAMED = "(?-i:\\p{Lu})[\\p{L}'’-]*(?: (?-i:\\p{Lu})[\\p{L}'’-]*)*(?: [\\p{L}-]+){0,3}?";
const SOMEBODYS = "(?!(?:that|it|what|who|there|here|he|she|let)['’])[\\p{L}-]+['’]s(?: [\\p{L}-]+){1,3}?";
const STATEMENT = `(?:(?:i|we) \\w+ [^?]+?|(?:(?:my|our|the)\\b[^?]*?\\b|(?:${NAMED}|${SOMEBODYS}) )${VERB}\\b[^?]+?)`;

type Groups = Record<"file" | "text" | "by", string>;
const write = ({ file, text }: Groups): Deed => writing(file, text);
const add = ({ file, text }: Groups): Deed => withWords(text, { does: "add", file, text });
/** "Write 'Buy milk'" is to be written, and not answered. */
const save = ({ file, text }: Groups): Deed => {
  const quoted = /^(?:write|put|note)\s+(?<text>["'“‘`].*["'”’`])$/is.exec(text)?.groups?.text;
  return quoted === undefined ? { does: "compose", name: file, request: text } : writing(file, quoted);
};
const note = ({ text }: Groups): Deed | null =>
  text.endsWith("?") || isUnsaid(text) ? null : { does: "remember", text: bare(unasked(text)) };
const read = ({ file }: Groups): Deed => ({ does: "read", file });
const list = ({ file }: Groups): Deed => ({ does: "list", folder: file === "" ? null : file });
const recall = ({ text }: Groups): Deed => ({ does: "recall", about: text });
const check = ({ file, text }: Groups): Deed => withWords(text, { does: "check", file, item: bare(text) });
const take = ({ file, text }: Groups): Deed => withWords(text, { does: "take", file, item: bare(text) });
const clear = ({ file }: Groups): Deed => ({ does: "clear", file });
const copy = ({ file, by }: Groups): Deed => ({ does: "copy", file, to: by });
const forget = ({ text }: Groups): Deed => ({ does: "forget", about: bare(unasked(text)) });

/** "Save this as returns.md", after the text */
export const namedForAbove = spacedName(
  `${SAVE}(?: (?:it|this|that|them|these|those|(?:this|the|that) (?:[\\w-]+ )?(?:text|lines?|words?|list|note|recipe|e-?mail|mail|message|letter|story|poem|above)))? ${INTO} ${FILE}${END}`,
);

/** What is written after these is as long as it likes. */
export const LONG_FORMS = [
  form(`(?:${SAVE}|take) ${THIS}${INTO} ${FILE}${COLON}(?<text>.+)$`, ({ file, text }) => verbatim(file, text)),
  form(
    `(?:create|make|start|write|new) ${FILE}(?: ${SAYS}(?: (?:this|these|the following|the)(?: (?:text|words|lines?|list|items|points))?)?)?${COLON}(?<text>.+)$`,
    write,
  ),
];

/** The first that fits counts. */
export const FORMS = [
  // "Write a poem about the sea and save it as sea.md"
  form(
    `(?<text>\\S.{3,}?),? (?:and|then) (?:then )?${SAVE} (?:it|this|that|them|the \\w+) ${INTO} ${FILE}${END}`,
    save,
  ),
  // "Save this in ideas.txt: a garden on the roof", "Create a file called names.md with Tom and Eva"
  ...LONG_FORMS,
  form(`${SAVE} ${INTO} ${FILE}${COLON}(?<text>.+)$`, write),
  // "In names.md, write Tom"
  form(`(?:in|into|to) ${FILE},? ${SAVE}:? (?<text>.+?)${END}`, write),
  form(`(?:in|into|to) ${FILE},? (?:add|append):? (?<text>.+?)${END}`, add),
  form(`(?:create|make|write|start|i need|i want|new) ${FILE}(?:${COLON}|[,.]? ${SAYS}\\s*)(?<text>.+?)${END}`, write),
  // "Add butter to my shopping list", "Put eggs on the list", "Write 'Call Eva' at the end of todo.md"
  ...[FILE, LIST].flatMap((file) => [
    form(`(?:add|append|include|enter) (?<text>.+?) (?:${INTO}|onto|${AT_END}) ${file}${END}`, add),
    form(`(?:put|write|note) (?<text>.+?) ${AT_END} ${file}${END}`, add),
  ]),
  form(`(?:put|write|note) (?<text>.+?) (?:${INTO}|onto) ${LIST}${END}`, add),
  // "Save my packing list: socks, shirts"
  form(`(?:${SAVE}|make|create|start) ${LIST}${COLON}(?<text>.+)$`, add),
  // "I need tea. Add it to my shopping list"
  ...[FILE, LIST].map((file) =>
    form(
      `${LACK} (?<text>[^.!?]+?)[.!,;]+ ${ASK}(?:add|put) (?:it|that|this|them|those|these) ${INTO} ${file}${END}`,
      add,
    ),
  ),
  ...[FILE, LIST].map((file) =>
    form(
      `(?:add|append|put|write) (?:(?:(?:an?|the|this|another) (?:line|item|entry|point|task)|(?:this|these|the following)(?: items| things)?) )?(?:${INTO}|${AT_END}) ${file}${COLON}(?<text>.+)$`,
      add,
    ),
  ),
  form(`add (?:an?|the|this) (?:task|to-?do)(?: item)?${COLON}(?<text>.+)$`, ({ text }) =>
    add({ file: "my to-do list", text, by: "" }),
  ),
  // "Make me a shopping list with eggs and milk", but not "a list of three fruits"
  form(
    `(?:create|make|write|start|begin)(?: me| us)? (?:an?|my|our|the) (?:new )?(?<file>(?:[\\w-]+ ){1,2}list)(?:${COLON}| (?:with|containing) )(?!(?:\\d+|two|three|four|five|six|seven|eight|nine|ten|some|all|everything)\\b)(?<text>.+?)${END}`,
    add,
  ),
  // "Check off the lemons on my shopping list", "Mark 'pay the rent' as done"
  ...[FILE, LIST].flatMap((file) => [
    form(`(?:check|tick|cross) off (?<text>.+?) (?:on|in|from) ${file}${END}`, check),
    form(`(?:check|tick) (?<text>.+?) off (?:on |in |from )?${file}${END}`, check),
    form(`mark (?<text>.+?) (?:on|in|from) ${file} as ${DONE}${END}`, check),
    form(`mark (?<text>.+?) as ${DONE} (?:on|in) ${file}${END}`, check),
  ]),
  form(`mark (?<text>.+?) as (?:bought|got)${END}`, ({ text, by }) => check({ file: "my shopping list", text, by })),
  form(`(?:mark (?<text>.+?) as ${DONE}|(?:check|tick) off (?<by>.+?))${END}`, ({ text, by }) => {
    const deed = check({ file: "my to-do list", text: text || by, by: "" });
    return deed.does === "check" ? { ...deed, isGuessed: true } : deed;
  }),
  // "Clear my shopping list", "Remove everything from todo.md"
  ...[FILE, LIST].flatMap((file) => [
    form(`(?:clear|empty|wipe)(?: out)? ${file}${END}`, clear),
    form(`(?:remove|delete|clear|take|erase) ${ALL_ITEMS} (?:from|on|off|in|out of) ${file}${END}`, clear),
  ]),
  // "Rename todo.md to chores.md", "Make a copy of my shopping list called old.md"
  ...[FILE, DOCUMENT].flatMap((file) => [
    form(`(?:rename|change the name of) ${file} (?:to|as|into) ${TO_FILE}${END}`, ({ file, by }) => {
      return { does: "rename", file, to: by };
    }),
    form(`(?:copy|duplicate) ${file} (?:to|as|into) ${TO_FILE}${END}`, copy),
    form(`(?:make|create|save) a (?:copy|duplicate|backup) of ${file} (?:(?:to|as|in|into) )?${TO_FILE}${END}`, copy),
  ]),
  // "Take the lemons off my shopping list"
  ...[FILE, LIST].map((file) =>
    form(`(?:remove|delete|take|cross|strike|drop) (?:out )?(?<text>.+?) (?:from|off|out of) ${file}${END}`, take),
  ),
  // "Change milk to cream on my shopping list"
  ...[FILE, LIST, PAPER].map((file) =>
    form(`(?:replace|change) (?<text>.+?) (?:with|by|to|into) (?<by>.+?) (?:in|on) ${file}${END}`, (found) => ({
      ...{ does: "replace", file: found.file, item: bare(found.text), by: bare(found.by) },
    })),
  ),
  // "Write 'Buy milk' into milk.md", "Create notes.md", "Delete my notes about Oslo"
  form(`${SAVE} (?<text>.+?) ${INTO} ${FILE}${END}`, write),
  form(`(?:create|make|start) (?:an empty )?${FILE}${END}`, ({ file }) => ({ does: "write", name: file, text: "" })),
  ...[FILE, DOCUMENT, PAPER].map((file) =>
    form(`${DELETE} ${file}${NOT_NEEDED}${END}`, (found) => ({ does: "delete", file: found.file })),
  ),
  // "Put this into a note: water the plants", "Remember that I prefer tea", "Make a note to call the bank"
  form(`${SAVE} (?:${THIS})?${INTO} ${NOTE}${COLON}(?<text>.+)$`, note),
  form(
    `(?:${SAVE} (?:this|that|the following)(?: for later)?|take (?:this|the following) down)${COLON}(?<text>.+)$`,
    note,
  ),
  form(
    "(?:remember|(?:keep|bear) in mind|note(?: down)?|(?:write|jot) down|(?:don['’]?t|do not|never) (?:let me )?forget)" +
      `(?: (?:this|the following))?(?:,? that |${COLON})(?<text>\\S.*)$`,
    note,
  ),
  form(`(?:remember|(?:don['’]?t|do not) forget) (?<text>${STATEMENT})$`, note),
  form(`(?:remember|(?:don['’]?t|do not|never) forget) to (?<text>\\S.*)$`, note),
  form(`(?:don['’]?t|do not|never) let me forget (?:to )?(?<text>\\S.*)$`, note),
  form(
    `(?<text>${STATEMENT}),?(?: (?:so|and))? (?:please )?(?:remember|note|keep) (?:that|this|it)(?: in mind)?${END}`,
    note,
  ),
  form(`(?:make|take|put|leave|add|create|save) ${NOTE} (?:to|of|about) (?<text>\\S.*?)${IN_NOTE}${END}`, note),
  form(
    `(?:make|take|put|leave|add|write|create|save) ${NOTE}(?: (?:(?:that|which) says|saying)\\b:?\\s*|${COLON}| that )(?<text>\\S.*)$`,
    note,
  ),
  // "Forget that I prefer tea", "Forget what I told you about the plumber"
  form(`${FORGET} (?<text>${STATEMENT})$`, forget),
  form(`${FORGET} what (?:${TELL}|you (?:have )?(?:noted|remember(?:ed)?|know)) about (?<text>[^.!?]+?)${END}`, forget),
  // "Forget about Leo, please", but "forget about the rain" lets a matter rest
  form(`${FORGET} (?:everything |all )?about (?<text>(?:(?-i:\\p{Lu})|(?:my|our) )[^.!?]+?)${END}`, forget),
  // "Show me my shopping list", "What does todo.md say?", "What have I got on my list?"
  ...[FILE, LIST, MY_DOCUMENT].flatMap((file) => [
    form(
      `(?:read|open|show|display|print|cat|view)(?: me)?(?: what is (?:in|on))?(?: the (?:contents?|text) of)? ${file}${TO_ME}${ASKED}`,
      read,
    ),
    form(
      `what(?:['’]?s| is|['’]?s left| is left| do (?:i|we|you) have| have (?:i|we|you)(?: got| put)?| stands| did (?:i|we) put)(?: written)? (?:in|on) ${file}${ASKED}`,
      read,
    ),
    form(`what (?:does|do) ${file} (?:say|contain|have|hold|list)${ASKED}`, read),
  ]),
  ...[FILE, LIST].map((file) =>
    form(`is there (?:still )?(?:anything|something) (?:left )?(?:in|on) ${file}${ASKED}`, read),
  ),
  // "What is in the file I just uploaded?": which one it is, is not known.
  form(
    `(?:what(?:['’]?s| is) in|what does|read|open|show(?: me)?(?: what is in)?|summari[sz]e|look at|tell me (?:about|what is in)) (?<file>(?:the|my|this|that) (?:new )?(?:file|document|pdf|text)(?: (?:that|which))? (?:i|we)(?:['’]ve| have)? (?:just )?(?:uploaded|sent|attached|added|gave|shared|put)\\b[^.,?!]*?)(?: (?:say|contain))?${ASKED}`,
    read,
  ),
  // Of what a file says, the model would keep only half.
  ...[FILE, MY_DOCUMENT, PAPER].map((file) =>
    form(`(?:summari[sz]e|sum up)(?: what is in)? ${file}${ASKED}`, (found) => ({
      ...{ does: "read", file: found.file, isSummary: true },
    })),
  ),
  // "List your files", "Which files are there in the folder recipes?"
  form(
    `(?:list|show|display)(?: me)?(?: all)?(?: of)?(?: a list of)? (?:your|my|the|our) (?:files|documents)${IN_FOLDER}${ASKED}`,
    list,
  ),
  form(
    `(?:what|which) (?:files|documents)(?: do (?:you|i|we) have| have (?:you|i|we)(?: got)?| are there| are (?:stored|saved)| are(?= in))?(?: here)?${IN_FOLDER}${ASKED}`,
    list,
  ),
  form(
    `(?:what is|what['’]?s|list (?:all|everything)|show(?: me)? (?:all|everything)) in (?:your|my|the|our) (?:workspace|files)${ASKED}`,
    list,
  ),
  form(`list (?:all|everything)${IN_FOLDER}${ASKED}`, list),
  // "What have you noted?", "What did I tell you about the plumber?", "Search your memory for the wifi"
  form(
    `what (?:${REMEMBER}|did (?:i|we) tell you|have (?:i|we) told you|do you know about (?:me|us)|(?:is|stands) in ${IN_MEMORY})(?: about (?:me|us|myself))?(?: so far)?${ASKED}`,
    () => ({ does: "recall", about: null }),
  ),
  form(
    `(?:do you (?:still )?(?:remember|know) )?what (?:${TELL}|${REMEMBER}|do your notes say|do you know(?= about (?:my|our)\\b)) about (?<text>.+?)${ASKED}`,
    recall,
  ),
  form(`(?:search|look (?:in|into|through)) ${ALL_FILES} for (?<text>.+?)${ASKED}`, recall),
  form(`(?:find|look for|search for) (?<text>.+?) in ${ALL_FILES}${ASKED}`, recall),
  form(`(?:search|check|look (?:in|into|through)) ${IN_MEMORY} (?:for|about) (?<text>.+?)${ASKED}`, recall),
  form(
    `(?:(?:is there|do you have) (?:anything|something|any notes?) (?:in ${IN_MEMORY}|noted)|have you noted (?:anything|something)) about (?<text>.+?)${ASKED}`,
    recall,
  ),
];

function spacedName(source: string) {
  const pattern = spaced(source);
  return (asked: string): string | undefined => pattern.exec(asked)?.groups?.file;
}

function form(source: string, deed: (groups: Groups) => Deed | null) {
  const pattern = spaced(source);
  return (asked: string): Deed | null => {
    const found = pattern.exec(asked);
    return found === null
      ? null
      : deed({ file: found.groups?.file ?? "", text: found.groups?.text ?? "", by: found.groups?.by ?? "" });
  };
}
