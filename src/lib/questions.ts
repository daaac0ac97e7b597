/** What kind of question a message is, by its words: a small model needs other help with each. English only. */

import { sentencesOf } from "./words.ts";

/** What may come before a question: "Hey, can you tell me". */
const BEFORE =
  /^\W*(?:(?:hello|hi|hey|so|and|ok|okay|please)\b\W*)*((?:(?:(?:can|could) you )?(?:please )?tell me\b|do you (?:still )?(?:know|remember)\b)?)\W*/i;
export const QUESTION =
  /^(?:(?:in|at|on|to|from|of|by|with|for) )?(?:(?:what|who|where|when|how(?! to\b))s?|whose|which|why)\b/i;
/** "The capital of France". */
const PART = /^(?:the )?\w+ of\b/i;
/** A longer message is about more than one fact. In UTF-16 code units. */
const LINE = 120;
const PERSONAL = /\b(?:i|me|my|we|us|our|you|your|yours)\b/i;
/** It asks for advice or a taste: "What is a good gift?", "Which is better, tea or coffee?" */
const WEIGHS = /\b(?:good|better|best|nice|nicest|should|would|could|helps?)\b/i;
/** It has examples of its own, or asks for more than a fact. */
const SIZED = /\b(?:words?|sentences?|lines?|paragraphs?|detail|explain|describe|list)\b/i;

/** The question without what comes before it; `isLedIn` after "tell me" or "do you know". Null if it has many words. */
export function lineOf(message: string): { line: string; isLedIn: boolean } | null {
  const [before = "", ledIn = ""] = BEFORE.exec(message) ?? [];
  const line = message.slice(before.length).trim();
  return line.length > LINE || line.includes("\n") ? null : { line, isLedIn: ledIn !== "" };
}

/** Whether a message asks for a fact of the world: "What is the capital of France?" */
export function asksAboutWorld(message: string): boolean {
  const { line, isLedIn } = lineOf(message) ?? { line: "", isLedIn: false };
  const asks = QUESTION.test(line) || (PART.test(line) && (isLedIn || line.endsWith("?")));
  return asks && ![PERSONAL, WEIGHS, SIZED].some((other) => other.test(line));
}

const STATEMENT = /^(?:i|i['’]m|i['’]ve|my|we|our|it|it['’]s|the|this|there|(?:you can )?call me)\b[^?]*$/i;
/** "My train is late." */
export const isStatement = (message: string): boolean => STATEMENT.test(message);

/** What somebody may ask to be written. The source of a regular expression. */
export const WORK =
  "(?:answer|reply|response|text|message|poem|haiku|limerick|story|tale|joke|letter|e-?mail|essay|speech|song|recipe|list|summary|translation|plan|code|script|function|query|facts?|ideas?|tips?)";
/** "I need a poem", "I want you to" */
const WISH = new RegExp(`\\b(?:need|want|like|looking for)\\b.{0,40}\\b(?:${WORK}|you to)\\b`, "i");
/** What may come before a statement: "Dear diary, today". */
const BEFORE_OWN =
  /^\W*(?:(?:hello|hi|hey|ok|okay|so|well|dear diary|today|yesterday|tonight|tomorrow|(?:this|last|next) (?:morning|afternoon|evening|night|week|\w+day))\b\W*)*/i;
/** "Meeting is at three", "Tom comes on Monday" */
const NAMED =
  /^(?!(?:is|are|was|were|does|did|has|have)\b)(?-i:\p{Lu})[\p{L}'’-]*(?: [\p{L}'’-]+){0,2}? (?:is|are|was|were|ha[sd]|will|comes?|came|goes|went|likes?|loves?|wants?|needs?|lives?|works?|starts?|ends?|leaves?|moves?)\b[^?]*$/iu;
/** "Dear Lise,", "Here is my list:", "Subject: …", "- milk" */
const PASTED =
  /^\s*(?:dear\b|here(?: is| are|['’]s)\b|(?:from|to|cc|subject|date|title|agenda|present):|(?:[-*+•#]+|\d+[.)])\s)/i;

/** "I have eggs and milk. Suggest a recipe." */
const ASKS_FOR_WORK =
  /^\W*(?:(?:and|so|please|pls|now)\W+)*(?:please|can|could|will|would|do|tell|write|explain|list|give|show|make|help|translate|rewrite|describe|suggest|recommend|name|find|draft|compose|summari[sz]e|fix|correct|plan|calculate|remind|add|put|save|delete|remove)\b/i;

/** "Suggest a recipe", "I need a poem", "Why is the sky blue" */
export const asksForWork = (text: string): boolean =>
  ASKS_FOR_WORK.test(text) || QUESTION.test(text) || WISH.test(text);

/** Whether a message is a text of the person's own, which asks for nothing: a statement, a letter, a list. */
export function isOwnText(message: string): boolean {
  if (PASTED.test(message)) return true;
  const rest = message.slice(BEFORE_OWN.exec(message)?.[0].length ?? 0);
  if (asksForWork(rest) || asksForWork(sentencesOf(rest).at(-1) ?? "")) return false;
  return isStatement(rest) || NAMED.test(rest);
}

const OWN_MESSAGE =
  /^\W*what (?:did i (?:just )?(?:ask|say)(?: you)?(?: (?<asked>first|last|before|just now))?|was (?:my|the) (?<which>first|last|previous) (?:question|message|thing i (?:asked|said)))(?: (?:to|of) you| i asked(?: you)?| today)*\W*$/i;

/** Which message of the person a question is about: "What did I just ask?" Null for any other question. */
export function ownMessageAsked(message: string): "first" | "last" | null {
  const found = OWN_MESSAGE.exec(message);
  if (found === null) return null;
  return /first/i.test(found.groups?.asked ?? found.groups?.which ?? "") ? "first" : "last";
}

const JOKE = /\bjokes?\b|\bmake me laugh\b/i;
/** "Do you know a joke?" */
export const asksForJoke = (message: string): boolean => JOKE.test(message);

/** What comes before a request: "Could you please". The source of a regular expression. */
export const PLEASE = "^\\W*(?:(?:please|pls|plz|(?:can|could|will|would) (?:you|u))\\W+)*";
/** How the names of text files end. The source of a regular expression. */
export const TEXT_FILE = "\\.(?:md|txt|csv|json|ya?ml|html)";
const CORRECTION = new RegExp(
  `${PLEASE}(?:fix|correct)\\b|\\b(?:fix|correct|check)\\b.{0,30}?\\b(?:spelling|grammar|typos?|mistakes?)\\b`,
  "is",
);
/** "Fix the spelling: I hav a gud idea" */
export function asksForCorrection(message: string): boolean {
  const asked = CORRECTION.exec(message);
  // What is to be corrected comes after it; an expression with both would look for that behind each word that asks.
  const last = Math.max(message.lastIndexOf(":"), message.lastIndexOf("\n"));
  return asked !== null && asked.index + asked[0].length <= last;
}
/** What is to be corrected. */
export const textToCorrect = (message: string): string => message.slice(message.search(/[:\n]/) + 1);

const SUMMARY = new RegExp(`${PLEASE}(?:summari[sz]e|sum up|tl;?dr)\\b.*[:\\n]`, "is");
/** "Summarise this: The meeting …" */
export const asksForSummary = (message: string): boolean => SUMMARY.test(message);

const HAIKU = /\b(?:write|compose|make|give|another|tell)\b.{0,20}\bhaiku\b|^\W*(?:an? )?haiku\b/i;
/** "Write a haiku about the sea." */
export const asksForHaiku = (message: string): boolean => HAIKU.test(message);

const ANY_FACT =
  /\b(?:fun|interesting|random|surprising) facts?\b|\b(?:tell (?:me|us)|say|know) something (?:interesting|new|surprising)\b|\bsurprise me\b/i;
/** "Tell me something interesting." */
export const asksForAnyFact = (message: string): boolean => ANY_FACT.test(message);

const NEED =
  /^\W*(?:i am|i['’]?m|i feel) (?:(?:so|very|really|rather|quite|too|just|feeling|a (?:bit|little)) )*(?:bored|tired|hungry|thirsty|sleepy|exhausted|starving|freezing|cold|hot)\b[^?]{0,20}$/i;
/** "I am hungry": what one can do about it is plain. */
export const needsSomething = (message: string): boolean => NEED.test(message);

const CODE =
  /\b(?:write|give|show|make)\b.{0,40}\b(?:code|function|program|script|query|regex|html|dockerfile|(?:for|while) loop|(?:bash|shell|linux|git|terminal) command)\b/i;
/** "Write a function that adds two numbers." */
export const asksForCode = (question: string): boolean => CODE.test(question);

const EMAIL = /\b(?:write|draft|compose|need|make)\b.{0,30}\be-?mails?\b/i;
/** "Write an email to my boss." */
export const asksForEmail = (message: string): boolean => EMAIL.test(message);

const RECIPE = /\brecipe (?:for|with)\b|\b(?:give|tell|know|need)\b.{0,30}\brecipe\b/i;
/** "Give me a recipe for pancakes." */
export const asksForRecipe = (message: string): boolean => RECIPE.test(message);
