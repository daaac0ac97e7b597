/**
 * The prompt of a small model: the owner's own words, the name, and the few turns that the message refers to. Such a
 * model repeats whatever else it reads: headings, file names, instructions about tools (docs/eval.md has the figures).
 */

import { isOfFile } from "../lib/file-says.ts";
import type { Exchange } from "../lib/follow-up-forms.ts";
import { inFull, isRequest } from "../lib/follow-ups.ts";
import { asksForOtherLanguage, type Language, languageOf } from "../lib/language.ts";
import { ownMessageAsked } from "../lib/questions.ts";
import {
  asksForThing,
  asSaid,
  asStatement,
  latest,
  needsTelling,
  notesFor,
  REMEMBERS,
  recallQuestion,
  sharesVerb,
  statementsFor,
  withoutRequest,
} from "../lib/recall.ts";
import { wordsOf } from "../lib/words.ts";
import { RECALL, STRUCTURED, type WorkedExamples, workedExamples } from "../lib/worked-examples.ts";
import {
  askedText,
  cut,
  isAnyObject,
  NO_TURNS,
  type Prompt,
  roomOf,
  SKILLS_HEADING,
  skillLine,
} from "./prompt-room.ts";
import type { RunInput, Turn } from "./protocol.ts";

/** What it takes of a run. */
type Frame = Pick<RunInput, "agentName" | "files" | "skills" | "instructions" | "limits" | "model">;

/** The character comes first; of the rest, what comes last is followed best. */
const ORDER = ["SOUL.md", "IDENTITY.md", "AGENTS.md", "TOOLS.md", "BOOTSTRAP.md", "MEMORY.md", "USER.md"];
/** What is known of the person. */
const NOTES = ["USER.md", "MEMORY.md"];
/** A longer description of the character, in characters of text, is not repeated at the end. */
const SHORT_CHARACTER = 400;
/** How many turns are searched for what the message refers to, and how many exchanges are included. */
const LOOKED_AT = 12;
const MAX_EXCHANGES = 2;
/** Characters of an old turn: enough to remember it, and too few to continue it. */
const OLD_TURN = 300;

export function shortPrompt(run: RunInput): Prompt {
  const room = roomOf(run.model.contextTokens);
  const system = shortSystemText(run);
  const turns = standingAlone(run.conversation);
  const asked = turns.at(-1);
  const left = Math.max(room - system.length, Math.floor(room / 2));
  const last: Turn[] = asked ? [{ ...asked, text: cut(asked.text, left) }] : [];
  const own = ownMessageAsked(asked?.text ?? "");
  const before = own !== null ? ownMessage(own, run) : asked ? turnsBefore(asked.text, turns.slice(0, -1), run) : [];
  const size = [...before, ...last].reduce((sum, { text }) => sum + text.length, 0);
  // Turns that are left out are not mentioned, because the model would talk about them.
  return { system, summary: null, kept: NO_TURNS, turns: size > left ? last : [...before, ...last], dropped: 0 };
}

/** The person's first or last message before this one, as it was, if this is known. */
function ownMessage(which: "first" | "last", { conversation, earlier, summary }: RunInput): Turn[] {
  const said = conversation.slice(0, -1).filter(({ role }) => role === "user");
  const isWhole = earlier === 0 && summary === undefined;
  const turn = which === "last" ? said.at(-1) : isWhole ? said[0] : undefined;
  return turn === undefined ? [] : [{ ...turn, text: cut(turn.text, OLD_TURN) }];
}

/** The turns, with each message in words that say what it means by itself. */
function standingAlone(turns: readonly Turn[]): Turn[] {
  const exchanges: Exchange[] = [];
  return turns.map((turn) => {
    const { asked, answered } = exchanges.at(-1) ?? { asked: "", answered: "" };
    if (turn.role === "assistant") {
      exchanges.splice(-1, 1, { asked, answered: turn.text });
      return turn;
    }
    const text = inFull(asStatement(turn.text, answered), { asked, answered, exchanges });
    exchanges.push({ asked: text, answered: "" });
    return { ...turn, text };
  });
}

/** The system message of a short prompt. */
export function shortSystemText(run: Frame): string {
  const texts = ORDER.map((name) => withoutHeadings(run.files.find((file) => file.name === name)?.text ?? ""));
  const [character = "", ...others] = texts;
  const between = [...others.filter((text) => text !== ""), ...skillTexts(run)];
  const again = between.length > 0 && character.length <= SHORT_CHARACTER ? [character] : [];
  const language = languageOf(texts.join(" "));
  const name = NAME_IS[language](run.agentName);
  // In a language that it hardly knows, the model repeats what comes last, so the name comes first.
  const own = [
    ...(language === "en" ? [] : [name]),
    character,
    ...between,
    ...again,
    ...(language === "en" ? [name] : []),
  ];
  return [...own, ...askedText(run)].filter((text) => text !== "").join("\n\n");
}

/** In the language of the rest: after one more English sentence, a German persona would answer in English. */
const NAME_IS: Readonly<Record<Language, (name: string) => string>> = {
  en: (name) => `Your name is ${name}.`,
  de: (name) => `Du heißt ${name}.`,
  es: (name) => `Te llamas ${name}.`,
};

const withoutHeadings = (text: string): string =>
  text
    .replace(/^#{1,6}\s.*$/gm, "")
    .replace(/\n{3,}/g, "\n\n")
    .trim();

function skillTexts({ skills }: Frame): string[] {
  if (skills.length === 0) return [];
  const lines = skills.map((skill) => [skillLine(skill), skill.instructions ?? ""].join("\n").trim());
  return [[SKILLS_HEADING, ...lines].join("\n")];
}

/** Examples of what a message asks for, what is remembered, and what of the conversation it refers to. */
function turnsBefore(message: string, turns: readonly Turn[], { files, memories = [], limits }: RunInput): Turn[] {
  const facts = factsFor(message, turns, files, memories);
  if (limits?.output !== undefined) {
    const known = facts.length > 0 ? facts : memories;
    // Which members it is to have, only the message says then.
    const examples = isAnyObject(limits.output.schema) ? [] : turnsOf(STRUCTURED);
    return [...examples, ...known.flatMap(told), ...recalled(turns, message)];
  }
  if (facts.length > 0) return [...turnsOf(RECALL), ...facts.flatMap(told)];
  // What a file has is told as it stands there (models/local/recall.ts).
  if (memories.some(isOfFile)) return memories.flatMap(told);
  return [...turnsOf(workedExamples(message)), ...memories.flatMap(told), ...recalled(turns, message)];
}

/** What the person has told, or is noted of them, if the message asks for that. */
function factsFor(
  message: string,
  turns: readonly Turn[],
  files: RunInput["files"],
  memories: readonly string[],
): string[] {
  const question = recallQuestion(message);
  if (question === null) return [];
  const said = statementsFor(
    question,
    turns.flatMap(({ role, text }) => (role === "user" ? [text] : [])),
  );
  const isPersonal = needsTelling(question);
  const isTold = (memory: string) => isPersonal || asksForThing(question) || sharesVerb(memory, question);
  const known = memories.filter(isTold).map(withoutRequest);
  const noted = files.flatMap(({ name, text }) => (NOTES.includes(name) ? [withoutHeadings(text)] : []));
  const notes = isPersonal ? notesFor(question, noted) : [];
  return latest(question, eachOnce([...notes, ...known, ...said]), said);
}

/** Without what says the same in other marks. */
const eachOnce = (facts: readonly string[]): string[] => [
  ...new Map(facts.map((fact) => [wordsOf(fact).join(" "), fact])).values(),
];

const turnsOf = ({ exchanges }: WorkedExamples): Turn[] =>
  exchanges.flatMap(([user, assistant]): Turn[] => [
    { role: "user", text: user },
    { role: "assistant", text: assistant },
  ]);

/**
 * Something that the person has told before, as a turn: of 14 facts, the embedded model gave back 11 to 13, none
 * without, and 7 where it was told a second thing too.
 */
const told = (memory: string): Turn[] => [
  { role: "user", text: asSaid(memory) },
  { role: "assistant", text: REMEMBERS },
];

/** Words that refer back: such a message means nothing without the turn before it. */
const BACK =
  /(?<!^)\b(?:(?:does|did) (?:that|this)|(?<!\b(?:is|are|was|were|over|out|up|down) )there|it|them|those|these|he|she|they|him|her|again|else|another|instead|shorter|longer|earlier|said|remember|why|warum|noch|wieder|otra|otro|por qué)\b|^(?:and|but|so|why|und|aber|warum|y|pero)\b|\b(?:more|that|this|yours|mehr|más|eso)\W*$|^(?:shorter|longer)\b/iu;

/** About the words of an answer. */
const ABOUT_WORDS =
  /^(?:and|or|why|und|oder|warum|y|o)\b|\b(?:again|say|said|means?|meant|pronounced?|spell\w*|words?|correct|formal\w*|shorter|longer|noch|heißt|wort|wieder|otra|palabra)\b|\bpor qué\b/iu;

/**
 * Whether a message refers to the translation before it. "Is it cold?" does not, and neither does one with a word that
 * was translated: the model would answer in the other language.
 */
const isAboutTranslation = (message: string): boolean =>
  BACK.test(message) && (asksForOtherLanguage(message) || ABOUT_WORDS.test(message));

/** Oldest first: the exchange before a message that refers back, and those about the same subject. */
function recalled(turns: readonly Turn[], message: string): Turn[] {
  const recent = turns.slice(-LOOKED_AT);
  const subjects = subjectsOf(message);
  const starts = recent.flatMap(({ role }, at) => (role === "user" ? [at] : []));
  const chosen = starts.filter((start, at) => {
    const isBefore = at === starts.length - 1;
    const isShort = message.length <= 80;
    // If the same is asked again, it would repeat its answer.
    if (recent[start]?.text.trim() === message.trim()) return false;
    if (asksForOtherLanguage(recent[start]?.text ?? "")) return isBefore && isShort && isAboutTranslation(message);
    if (isBefore && isShort && BACK.test(message)) return true;
    // Another joke or haiku would be the same one.
    if (isRequest(message) && isRequest(recent[start]?.text ?? "")) return false;
    return [...subjectsOf(recent[start]?.text ?? "")].some((word) => subjects.has(word));
  });
  return chosen.slice(-MAX_EXCHANGES).flatMap((start) => {
    const end = starts.find((other) => other > start) ?? recent.length;
    return recent.slice(start, end).map(({ role, text }) => ({ role, text: cut(text, OLD_TURN) }));
  });
}

/**
 * Words of four or more letters that do not indicate a subject: sharing one does not mean being about the same thing.
 */
const COMMON = new Set(
  (
    "about after again ahead almost along already also always another answer anything around away back been before begin being best better " +
    "between both bring came cannot come could days different does doing done down each easy else enough even ever every everything explain " +
    "false fast feel find fine first found from gave give given goes going gone good great hard have having hear hello help here high idea ideas into " +
    "just keep kind know large last late least left less like likely list little live long look looks made make makes many maybe mean mine " +
    "more most much must name near need never next nice nothing okay once only other over part people person place please pretty quite " +
    "rather ready real really right said same seem short should show since small some someone something sometimes soon sorry start still such sure take " +
    "talk tell than thank thanks that their them then there these they thing things think this those though thought through time times today together " +
    "told tomorrow tonight took translate true under until upon used very want wanted ways well went were what when where which while whole will with " +
    "without word words work would write wrong year years yesterday your yours " +
    "aber alle auch beim bitte danke dann dass dein deine denn dich diese doch dort eine einem einen einer etwas ganz ganzen gern gerne gibt gute guten guter haben " +
    "hast heute hier ihre immer jetzt kann kannst machen machst mehr mein meine mich mögen morgen nach nicht noch oder schon sehr sein seine " +
    "sich sind über viel vielen warum wann welche welches wenn wird wirklich wissen wohl würde würdest " +
    "algo aquí bien buena bueno buenos como cómo cosa cosas cuál cuando dame desde dime donde dónde ella ellos eres esta está este estos favor gracias gusta hace " +
    "haces hacer hasta hola mejor mucha muchas mucho muchos nada otra otro para pero poco porque puede puedes puedo qué quiero sobre tengo tiene tienes todo toda todos tres unos"
  ).split(" "),
);

const subjectsOf = (text: string): Set<string> =>
  new Set((text.toLowerCase().match(/\p{L}{4,}/gu) ?? []).filter((word) => !COMMON.has(word)));
