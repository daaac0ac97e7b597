/**
 * Answers to what a person asks about themselves. A small model takes "my name" for its own, so its answer is begun for
 * it, and what it was told is likelier.
 */
import { isOfFile } from "../../lib/file-says.ts";
import { ownMessageAsked } from "../../lib/questions.ts";
import {
  asksForAll,
  asksForThing,
  doesNotKnow,
  needsTelling,
  REMEMBERS,
  recallQuestion,
  sharesWords,
} from "../../lib/recall.ts";
import { sentenceEnds, sentencesOf } from "../../lib/words.ts";
import { RECALL } from "../../lib/worked-examples.ts";
import type { Guide } from "./guidance.ts";
import type { ChatMessage } from "./protocol.ts";

export interface Recall {
  /** How many sentences the answer has; by default one. */
  sentences?: number;
  /** How the answer may begin; all of it, if nothing was told. */
  openings: readonly string[];
  /** What was told, to the person who told it: "Your dog is called Rex." */
  told: readonly string[];
}

/** "Who is my boss", "what is my dog called", "what is the name of my cat", "who is Marta" */
const IS =
  /^(?<what>.*?)\b(?<is>is|are|was|were) (?<whose>(?:the|this|my|our) .+?|\p{L}+(?:['’]s .+?)?)(?: (?<called>called|named))?$/iu;
/** "How old am I", "in what year was I born" */
const AM = /^(?<what>.*?)\b(?<am>am|are|was|were) (?:i|we)\b ?(?<state>.*)$/i;
/** "Which car do I drive" */
const DO = /^(?<what>.*?)\bdo (?:i|we) (?<does>.+)$/i;
/** "Where does my brother live", "when does the plumber come" */
const DOES = /\b(?:does|did) (?<whose>(?:(?:my|our|the|this) )?\p{L}+)/iu;
const PREPOSITION = /^(?:in|at|on|to|from|of|by|with|for)\b/i;
/** In the model's own words, its digits are told in another order. */
const NUMBER = /\d\D{0,3}\d/;
const LIVING = /\bfor a living$/i;

const THEIRS: Readonly<Record<string, string>> = {
  my: "your",
  our: "your",
  i: "you",
  we: "you",
  me: "you",
  am: "are",
  was: "were",
};

/** To the person whose words they are. */
const turned = (text: string): string =>
  text
    .replace(/^(?:you can )?call me\b/i, "your name is")
    .replace(/\b(?:i['’]m|i am|we['’]re)(?![\p{L}])/giu, "you are")
    .replace(/\bi was\b/gi, "you were")
    .replace(/\b(?:my|our|i|we|me)\b/gi, (word) => THEIRS[word.toLowerCase()] ?? word);

/** Null if the last message asks for nothing of the kind, or may be answered without having been told. */
export function recallOf(messages: readonly ChatMessage[]): Recall | null {
  // What a file has about the message is told as it stands there.
  const [said, noted] = messages.slice(-3, -1);
  if (said !== undefined && noted?.content === REMEMBERS && isOfFile(said.content))
    return { openings: [said.content], told: [], sentences: sentenceEnds(said.content).length };
  const asked = messages.findLast(({ role }) => role === "user")?.content ?? "";
  const question = ownMessageAsked(asked) === null ? recallQuestion(asked) : null;
  if (question === null) return null;
  // The prompt has examples if it has what was told (runtime/short-prompt.ts).
  const examples = messages.findIndex(({ content }) => content === RECALL.exchanges[0]?.[0]);
  const told = (examples < 0 ? [] : messages.slice(examples + 2 * RECALL.exchanges.length))
    .filter((_, at, all) => all[at + 1]?.content === REMEMBERS)
    .map(({ content }) => turned(content).replace(/[\s.,;:!]+$/, ""));
  const [first = ""] = told;
  if (first !== "") {
    const other = asksForThing(question) ? `${sentence(first)}.` : "You";
    return { openings: [beginningOf(question, told), other], told };
  }
  const instructions = messages.find(({ role }) => role === "system")?.content ?? "";
  if (!needsTelling(question) || sentencesOf(instructions).some((one) => mayTell(one, question))) return null;
  if (asksForAll(question))
    return { openings: ["You have told me nothing about yourself in this conversation."], told };
  return { openings: [doesNotKnow(partsOf(question).join(" "))], told };
}

/** "Our office is in Leeds", but not "You live by the sea": that is the agent's. */
const mayTell = (instruction: string, question: string): boolean =>
  !/^\W*your?\b/i.test(instruction) && sharesWords(instruction, question);

function beginningOf(question: string, told: readonly string[]): string {
  if (asksForAll(question) || told.some((text) => NUMBER.test(text)))
    return asksForThing(question) || told.every((text) => /^your?\b/i.test(text))
      ? `${sentence(LIST.format(told))}.`
      : `I know this: ${told.join("; ")}.`;
  if (LIVING.test(question)) return "You are";
  const [what, who, does] = partsOf(question);
  return sentence(`${who} ${does} ${PREPOSITION.exec(what)?.[0] ?? ""}`.trim());
}

/** "What", "your dog" and "is called", for "what is my dog called". */
function partsOf(question: string): [what: string, who: string, does: string] {
  const am = AM.exec(question)?.groups;
  const is = am ? undefined : IS.exec(question)?.groups;
  if (is) return [lower(is.what), turned(is.whose ?? ""), `${is.is} ${is.called ?? ""}`.trim()];
  if (am) return [lower(am.what), "you", `${THEIRS[lower(am.am)] ?? am.am} ${turned(am.state ?? "")}`.trim()];
  const does = DO.exec(question)?.groups;
  if (does) return [lower(does.what), "you", turned(does.does ?? "")];
  return ["", turned(DOES.exec(question)?.groups?.whose ?? "you"), ""];
}

const LIST = new Intl.ListFormat("en");
const lower = (text = ""): string => text.trim().toLowerCase();
const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** How much likelier a token of what was told is, in the model's logits. */
const TOLD = 4;

/** Makes the tokens of what was told likelier; the others only as often as they were told, so mostly not at all. */
export function towards(told: readonly number[], others: readonly number[]): Guide {
  const wanted = new Set(told);
  const timesIn = (tokens: readonly number[], token: number) => tokens.filter((one) => one === token).length;
  return async (logits, answer) => {
    const own = logits.slice(); // the next step writes over them
    for (const token of wanted) own[token] = (own[token] ?? 0) + TOLD;
    for (const token of others)
      if (timesIn(answer, token) >= timesIn(told, token)) own[token] = Number.NEGATIVE_INFINITY;
    return own;
  };
}
