/**
 * Finds the small model's faults in the text written so far. Pure functions of texts: the model process applies them to
 * every draft (guarded-generation.ts), while `npm run eval` judges whole answers by rules of its own.
 */
import { countLittleWords, isLittleWord, type Language, languageOf } from "../../lib/language.ts";
import { asksForCorrection, textToCorrect } from "../../lib/questions.ts";
import { containsRun, lastWholeSentence, longestRun, sentenceEnds, sentencesOf, wordsOf } from "../../lib/words.ts";
import { RECALL, workedExamples } from "../../lib/worked-examples.ts";
import { asksForDeed, claimsDeed, halfClaim, NOTHING_DONE } from "./claims.ts";
import {
  admitsMachine,
  advisesAgainst,
  deniesRole,
  inventsLife,
  isAkin,
  isVague,
  namesWork,
  strays,
  takesBack,
  trailsOff,
} from "./evasion.ts";
import { asksForName, asksWho, givesOtherName, halfCall, halfIntroduction, nameTold } from "./introduction.ts";
import { lengthWished } from "./length-wish.ts";
import { isTelling, loops, TELLING_WORDS } from "./loops.ts";
import { asksForAdvice, asksForWorks, isGreeting } from "./openings.ts";
import type { ChatMessage } from "./protocol.ts";
import { recallOf } from "./recall.ts";

export type Fault =
  | "echo"
  | "leak"
  | "loop"
  | "speaker"
  | "name"
  | "machine"
  | "language"
  | "length"
  | "claim"
  | "evasion";

export interface Guard {
  /** What is wrong with a text that may continue; null if nothing is. */
  faultIn(text: string): Fault | null;
  /** What is wrong with a text that is a complete beginning. */
  faultOfBeginning(text: string): Fault | null;
  /** Whether half a beginning may still become an echo, or fail to say what was asked for. */
  mayFail(text: string): boolean;
  /** The length of the text that can no longer become part of a fault; only this much may be shown. */
  safeLength(text: string): number;
  /** What is said where every beginning has this fault; null if the best of them is. */
  insteadOf(fault: Fault): string | null;
}

const ASKS_FOR_FACT = /\b(?:what|who|whose|where|when|why|which|how|explain|tell|write|list|translate|rewrite)\b/i;
/** This many words in a row that are also in the instructions are no coincidence. */
const LEAK_WORDS = 6;
/** A run of this many words may become a leak or a loop: it is held back until it differs. */
const SUSPECT_WORDS = 3;
/** Half a sentence with this many of the question's words in a row may become an echo of it. */
const ECHO_WORDS = 3;

const SPEAKER = /(?:^|\n)\s*(?:\*\*)?(?:user|human|assistant|system|question|answer|customer|you|me)(?:\*\*)?\s*:/i;
const CONTROL = /<\|?\/?(?:im_|end|start|user|assistant|system)|\b[A-Z]{3,}\.md\b/;
const HEADING = /(?:^\s*|\n)#{1,6}\s/;
/** A comment in it may look like a heading. */
const CODE = /```.*?(?:```|$)/gs;

/** Judges answers to the last message of this conversation. */
export function createGuard(messages: readonly ChatMessage[]): Guard {
  const question = messages.findLast(({ role }) => role === "user")?.content ?? "";
  const instructions = messages.filter(({ role }) => role === "system").map(({ content }) => content);
  const asked = wordsOf(question);
  const askedSentences = sentencesOf(question).map(wordsOf);
  const recall = recallOf(messages);
  const secret = recall === null ? instructions : []; // what is noted of a person is theirs to know
  const told = secret.map(wordsOf);
  const toldSentences = secret.flatMap(sentencesOf).map(wordsOf).filter(isTelling);
  const known = new Set(messages.flatMap(({ content }) => wordsOf(content)));
  const language = languageOfChat(messages);
  const ownName = nameTold(messages);
  const name = wordsOf(ownName ?? "");
  const wantsName = name.length > 0 && asksForName(question);
  /** "My name is Ada", to Ada: then it is the user's too. */
  const sharesName = containsRun(asked, name);
  const wantsItself = asksWho(question);
  const wantsAdvice = asksForAdvice(question) && recall === null;
  // "I do not know" is an honest answer to it, and any subject may be the right one.
  const wantsFact = !wantsAdvice && !wantsItself && ASKS_FOR_FACT.test(question) && !/\byour?\b/i.test(question);
  const conversation = messages.map(({ content }) => content.toLowerCase()).join("\n");
  const { exchanges, subjects } = recall === null ? workedExamples(question) : RECALL;
  const shown = new Set(exchanges.flat());
  const said = messages.flatMap(({ content }) => (shown.has(content) ? [] : wordsOf(content)));
  const ofExamples = subjects.filter((word) => !said.includes(word));

  /** A promise or a claim of what no tool has done. */
  const mayClaim = language === "en" && recall === null && asksForDeed(question);

  const toCorrect = asksForCorrection(question) ? wordsOf(textToCorrect(question)).join(" ") : null;

  function echoes(text: string): boolean {
    const words = wordsOf(text);
    if (toCorrect !== null) return words.join(" ") === toCorrect;
    if (asked.length >= 4 && longestRun(words, asked) >= Math.max(4, 0.75 * asked.length)) return true;
    // Only whole sentences: "The capital of France is" may go on with what was asked for.
    const [first = "", second = ""] = sentencesOf(text.slice(0, lastWholeSentence(text)));
    const begins = (sentence: string) => {
      const said = wordsOf(sentence);
      return isTelling(said) && askedSentences.some((one) => isNearly(said, one));
    };
    return begins(first) || (!isTelling(wordsOf(first)) && begins(second));
  }

  function leaks(words: string[]): boolean {
    return (
      toldSentences.some((one) => containsRun(words, one)) || told.some((one) => longestRun(words, one) >= LEAK_WORDS)
    );
  }

  /** "Odile, the one who reads": it refers to itself in the third person. */
  const speaksOfItself = (words: string[]) =>
    !wantsName && words.length > name.length && name.length > 0 && name.every((word, at) => isOrHas(words[at], word));

  const evades = (text: string) =>
    takesBack(text) ||
    (asksForWorks(question) && namesWork(text)) ||
    strays(text, conversation) ||
    (wantsItself && inventsLife(text, known)) ||
    told.some((words) => deniesRole(text, words));

  const introduction = new RegExp(
    `^\\W*(?:my name is|I['’]m ${RegExp.escape(name[0] ?? "")}\\b|I am ${RegExp.escape(name[0] ?? "")}\\b)`,
    "iu",
  );
  /** "It is a long way. I'm Moss, and I can help": a small model has nothing more to say. */
  const introducesItself = (text: string) =>
    name.length > 0 &&
    !wantsName &&
    !isGreeting(question) &&
    sentencesOf(text)
      .slice(1)
      .some((sentence) => introduction.test(sentence));
  /** It may be garbled: "Barnadoodle" for Barnaby. */
  const called =
    ownName === null
      ? null
      : new RegExp(
          `(?<!\\b(?:I['’]m|I am|is|it['’]s|me)), ${RegExp.escape(ownName.slice(0, 5))}[\\p{L}\\p{N}]*[.!?,]`,
          "u",
        );
  // What is to be written or rewritten may well speak of "my roses".
  const isTask =
    ASKS_FOR_FACT.test(question) || question.includes(":") || !Number.isFinite(lengthWished(messages).sentences);
  /** "My roses", of the user's. */
  const theirs = [
    ...(wantsAdvice || !isTask ? question : "").matchAll(/\b(?:my|our) (?!name\b|favou?rite\b)(\p{L}{3,})/giu),
  ].map(([, noun = ""]) => new RegExp(`\\b(?:my|our) ${noun}\\b`, "iu"));
  const callsUserByName = (text: string) => called?.test(text) === true && !wantsName && !sharesName;

  return {
    mayFail: (text) =>
      (wantsName && !containsRun(wordsOf(text), name)) ||
      longestRun(wordsOf(text), asked) >= ECHO_WORDS ||
      (wantsAdvice && (saysNothingNew(text, asked) || (language === "en" && isVague(text, [...asked, ...name])))),
    faultOfBeginning(text) {
      if (wantsName && !containsRun(wordsOf(text), name)) return "name";
      if (wantsAdvice && saysNothingNew(text, asked)) return "echo";
      const isEmpty =
        wantsAdvice &&
        language === "en" &&
        (advisesAgainst(text) || trailsOff(text) || isVague(text, [...asked, ...name]));
      return isEmpty ? "evasion" : null;
    },
    faultIn(text) {
      const words = wordsOf(text);
      if (SPEAKER.test(text) || speaksOfItself(words) || callsUserByName(text) || introducesItself(text))
        return "speaker";
      if (theirs.some((mine) => mine.test(text))) return "speaker";
      if ((recall === null && CONTROL.test(text)) || HEADING.test(text.replace(CODE, ""))) return "leak";
      if (leaks(words) || words.some((word) => ofExamples.includes(word))) return "leak";
      if (echoes(text)) return "echo";
      if (loops(text, words)) return "loop";
      if (givesOtherName(text, known)) return "name";
      if (admitsMachine(text, [...instructions, question])) return "machine";
      if (mayClaim && claimsDeed(text)) return "claim";
      if (language !== "en") return isEnglish(text) ? "language" : null;
      if (!wantsFact && evades(text)) return "evasion";
      return null;
    },
    safeLength(text) {
      // The first words of a line may be a speaker's name, and white space may come before one.
      const line = /\n[\s*]*[\p{L}]{0,12}(?:\*\*)?\s?$/u.exec(text)?.index ?? text.trimEnd().length;
      const tail = suspectTail(text.replace(/[\p{L}\p{N}'’]+$/u, ""), told);
      // Half a word cannot be compared.
      const word = /[\p{L}\p{N}'’]+$/u.exec(text)?.index ?? text.length;
      const introduction = halfIntroduction(text);
      const call = name.length === 0 || sharesName ? text.length : halfCall(text, ownName ?? "");
      // A sentence that has turned to English is recognised by its second English word.
      const last = sentenceEnds(text).at(-1) ?? 0;
      const english = language !== "en" && isMoreEnglish(text.slice(last), language) ? last : text.length;
      // What it says of itself is shown in whole sentences: a life that it makes up often shows at the end of one.
      const whole = wantsItself && language === "en" ? last : text.length;
      const claim = mayClaim ? halfClaim(text) : text.length;
      return Math.min(line, tail, word, introduction, call, english, whole, claim);
    },
    insteadOf: (fault) => (fault === "claim" ? NOTHING_DONE : null),
  };
}

/** The language that the agent's owner and its user write in. */
export const languageOfChat = (messages: readonly ChatMessage[]): Language =>
  languageOf(messages.flatMap(({ role, content }) => (role === "assistant" ? [] : [content])).join("\n"));

/** The name or its possessive: "Odile's". */
const isOrHas = (word: string | undefined, name: string): boolean => word === name || word === `${name}'s`;

/** Whether at least four of five words are the same, and none of the others says anything: "Paris" does. */
function isNearly(said: readonly string[], asked: readonly string[]): boolean {
  const most = Math.max(said.length, asked.length);
  const others = new Set(asked);
  const own = said.filter((word) => !others.has(word));
  return most >= TELLING_WORDS && said.length - own.length >= 0.8 * most && !own.some(tells);
}

/** Words that any advice may contain, besides function words. */
const ADVISING = new Set("i'd advice best could good may might on recommend should suggest try would".split(" "));

const tells = (word: string): boolean => word.length >= 3 && !ADVISING.has(word) && !isLittleWord(word);

/**
 * Advice whose meaningful words were nearly all in the question, "Try to read a book on a train", or whose example
 * repeats what it is one of: "Prune them, such as by pruning roses".
 */
function saysNothingNew(text: string, asked: readonly string[]): boolean {
  if (repeats(wordsOf(/^[^,;:.!?–—]*/u.exec(text)?.[0] ?? ""), asked)) return true;
  const [, advice = "", given = ""] = EXAMPLE.exec(text) ?? [];
  return repeats(wordsOf(given), [...asked, ...wordsOf(advice)]);
}

/** What an example is given of, and the example. */
const EXAMPLE = /^([^.!?]*), (?:for example by|such as) ([^.!?]+[.!?])/u;

/** Whether at least two of three meaningful words, and two in all, are among the others. */
function repeats(words: readonly string[], others: readonly string[]): boolean {
  const said = words.filter(tells);
  const repeated = said.filter((word) => others.some((other) => tells(other) && isAkin(word, other)));
  return repeated.length >= 2 && repeated.length >= 2 * (said.length - repeated.length);
}

function isMoreEnglish(text: string, language: Language): boolean {
  const counts = countLittleWords(text);
  return counts.en > counts[language];
}

/** Whether there is more English in it than a name or a loanword. A small model falls back to English. */
const isEnglish = (text: string): boolean => countLittleWords(text).en >= 2 && languageOf(text) === "en";

/**
 * Where the longest run of final words begins that also appears earlier in the text or in the instructions; the text's
 * length if there is none.
 */
function suspectTail(text: string, told: readonly string[][]): number {
  const places = [...text.matchAll(/[\p{L}\p{N}]+(?:['’][\p{L}]+)*/gu)].map(({ index }) => index);
  const words = wordsOf(text);
  let count = 0;
  for (let length = SUSPECT_WORDS; length < LEAK_WORDS + 1 && length <= words.length; length++) {
    const tail = words.slice(-length);
    if (!containsRun(words.slice(0, -1), tail) && !told.some((one) => containsRun(one, tail))) break;
    count = length;
  }
  return count === 0 ? text.length : (places.at(-count) ?? text.length);
}
