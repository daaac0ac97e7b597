/**
 * A line of a text file that has what a question asks for: a small model cannot read files, and makes up what stands in
 * them. It is told word for word, with the file's name.
 */
import type { Agent } from "../agents/schema.ts";
import type { Workspaces } from "../agents/workspaces.ts";
import { fileSays } from "../lib/file-says.ts";
import { QUESTION, TEXT_FILE } from "../lib/questions.ts";
import { wordsOf } from "../lib/words.ts";
import { PROMPT_FILES } from "../runtime/prompt.ts";
import { isNotesFile } from "./lines.ts";
import type { Found } from "./search/entry.ts";
import { isQuestionWord } from "./search/question-words.ts";

/** In UTF-16 code units: a longer message is more than a question, and a longer line more than an answer. */
const MAX_QUESTION = 160;
const MAX_LINE = 300;
const ASKS =
  /\?\s*$|^\W*(?:(?:hi|hello|hey|ok|and|so)\b\W*)?(?:whats?|wheres?|whens?|whos?|can|could|do|does|is|are|will|may)\b/i;
/** They say how or when something is asked for, or of whom, and stand in no answer. */
const SAY_LITTLE = new Set(
  "hi hello hey ok okay whats wheres whens whos long much many old far often today tomorrow now tell know get got please there still".split(
    " ",
  ),
);
const MAX_LOOKED_AT = 100;
const HEADING = /^#{1,6}\s+/;
const ITEM = /^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?/;
const IS_TEXT = new RegExp(`${TEXT_FILE}$`, "i");

/** Whether a file may hold what the message asks for. */
export const mayStandInFile = (message: string): boolean =>
  message.length <= MAX_QUESTION && (ASKS.test(message) || QUESTION.test(message)) && subjectsOf(message).size > 0;

/** Not one of the prompt or of the notes. */
const isOwnText = (name: string): boolean => IS_TEXT.test(name) && !isNotesFile(name) && !PROMPT_FILES.includes(name);

/** Whether there are such files, among the first of them. */
export const hasOwnTexts = (workspaces: Pick<Workspaces, "list">, agent: Agent): boolean =>
  workspaces.list(agent, "", MAX_LOOKED_AT).some(({ name }) => isOwnText(name));

/** The only line with all that the question is about, in itself or what it stands under; null if there is none, or several. */
export function fileAnswer(message: string, found: readonly Pick<Found, "file" | "text">[]): string | null {
  const wanted = subjectsOf(message);
  const answers = found.flatMap(({ file, text }) =>
    file === null || !isOwnText(file) ? [] : linesWith(wanted, file, text).map((line) => fileSays(file, line)),
  );
  const [answer, ...others] = new Set(answers);
  return answer === undefined || others.length > 0 ? null : answer;
}

function linesWith(wanted: ReadonlySet<string>, file: string, text: string): string[] {
  let heading = "";
  return text.split("\n").flatMap((line) => {
    if (HEADING.test(line)) heading = line;
    const said = line.replace(ITEM, "").trim();
    if (HEADING.test(line) || said === "" || said.length > MAX_LINE) return [];
    if (!wanted.isSubsetOf(stemsIn(`${file} ${heading} ${said}`)) || wanted.isDisjointFrom(stemsIn(said))) return [];
    return [/[.!?…]$/.test(said) ? said : `${said}.`];
  });
}

const subjectsOf = (message: string): Set<string> =>
  stemsIn(
    wordsOf(message)
      .map((word) => word.replace(/'.*$/, ""))
      .filter((word) => !SAY_LITTLE.has(word) && !isQuestionWord(word))
      .join(" "),
  );

/** "Punctures" and "puncture" are one. */
const stemsIn = (text: string): Set<string> =>
  new Set(
    wordsOf(text)
      .filter((word) => word.length > 2)
      .map((word) => word.slice(0, 4)),
  );
