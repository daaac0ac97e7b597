/**
 * How long an answer should be, as its conversation asks: told to answer "in two sentences", a small model writes five,
 * so its answer is ended after two.
 */
import { asksForEmail, asksForJoke, asksForRecipe } from "../../lib/questions.ts";
import { asksForAdvice, asksForNews, asksForWorks, isGreeting } from "./openings.ts";
import type { ChatMessage } from "./protocol.ts";

export interface LengthWish {
  /** Sentences after which the answer ends. */
  sentences: number;
  /** Sentences that the message itself asks for: the model often ends before. */
  least: number;
  /** Items of a list that the message asks for; 0 if it asks for none. */
  items: number;
  /** The most words of the first sentence, if few words were asked for. */
  words: number;
}

/** The default: beyond this, a small model wanders off. */
const USUAL_SENTENCES = 2;
/** "Tell me about your day." */
const TOLD_SENTENCES = 4;
/** More about itself would be made up. */
const TELLING = /\b(?:tell (?:me|us)(?! about yourself)|talk about|what do you know)\b/i;
/** A small model's first sentence of advice often praises it, and the next ones say what to do. */
const ADVISING_SENTENCES = 3;
/** A greeting is answered with a greeting. */
const GREETING_SENTENCES = 2;
/** For a long story, for example: as many as the answer has tokens for. */
const ENDLESS = Number.POSITIVE_INFINITY;

export const ONE_SENTENCE: LengthWish = { sentences: 1, least: 1, items: 0, words: ENDLESS };

const NUMBERS: Readonly<Record<string, number>> = {
  a: 1,
  one: 1,
  two: 2,
  three: 3,
  four: 4,
  five: 5,
  six: 6,
  seven: 7,
  eight: 8,
  nine: 9,
  ten: 10,
  twelve: 12,
  single: 1,
  einem: 1,
  einen: 1,
  ein: 1,
  zwei: 2,
  drei: 3,
  vier: 4,
  fünf: 5,
  una: 1,
  un: 1,
  dos: 2,
  tres: 3,
  cuatro: 4,
  cinco: 5,
};
const NUMBER = `(\\d{1,3}|${Object.keys(NUMBERS).join("|")})`;
const SENTENCES = new RegExp(
  `\\b${NUMBER}(?: or (?:\\w+))?(?: (?:short|brief|kurzen|kurze|breves?|cortas?))* (?:sentences?|sätzen?|satz|frases?|lines?)(?![\\p{L}])`,
  "iu",
);
const WORDS = new RegExp(`\\b${NUMBER} (?:words?|wörtern?|worten?|wort|palabras?)(?![\\p{L}])`, "iu");
/** "Name three fruits": each may have a line of its own. */
const COUNTED = new RegExp(
  `\\b(?:name|list|give (?:me|us)|tell (?:me|us)|suggest|recommend|what are)(?: the)? ${NUMBER} (?!words?\\b)\\p{L}`,
  "iu",
);
const YES_OR_NO =
  /\b(?:say|answer(?: with| me)?|sag|antworte(?: mit)?|di|responde(?: con)?)(?: just| only)?:? (?:yes or no|ja oder nein|sí o no)(?![\p{L}])/iu;
/** A request for a long text: "Tell me a story", but not "How do I write a letter?", "I got a letter" or "It was a long day". */
const LONG =
  /(?<!\b(?:do|can|could|should) (?:i|we) )\b(?:write|tell|give|show|make|compose|need|want|schreib\w*|erzähl\w*|gib|escrib\w*|cuént\w*|dame)\b.{0,40}\b(?:story|stories|tale|poem|haiku|limerick|verses?|song|lyrics|speech|dialogue|essay|letter|email|e-mail|list|steps|recipe|code|function|program|script|query|regex|geschichte|gedicht|brief|liste|cuento|historia|poema|carta|lista)\b|^list\b|\b(?:recipe for|steps (?:to|for)|explain|describe|in detail|at length|step by step|ausführlich|erkläre?|explica)\b/iu;

/** "Two sentences", but neither "at most two sentences" nor "two sentences or fewer". */
const FEWER = /\b(?:at most|up to|no more than|not more than|maximum|max|fewer|less)\b/i;

/** The last message's request applies, else that of the instructions. */
export function lengthWished(messages: readonly ChatMessage[]): LengthWish {
  const question = messages.findLast(({ role }) => role === "user")?.content ?? "";
  const instructions = messages.filter(({ role }) => role === "system").map(({ content }) => content);
  const asked = wishIn(question);
  if (asked) return asked.words < ENDLESS || FEWER.test(question) ? asked : { ...asked, least: asked.sentences };
  const counted = numberIn(COUNTED, question) ?? 1;
  if (counted > 1) return { sentences: counted, least: 1, items: counted, words: ENDLESS };
  if (LONG.test(question) || asksForEmail(question) || asksForRecipe(question))
    return { sentences: ENDLESS, least: 1, items: 0, words: ENDLESS };
  const usual = { sentences: sentencesFor(question), least: 1, items: 0, words: ENDLESS };
  return wishIn(instructions.join("\n")) ?? usual;
}

function sentencesFor(question: string): number {
  if (asksForNews(question)) return 1;
  if (isGreeting(question)) return GREETING_SENTENCES;
  if (asksForAdvice(question) && !asksForWorks(question)) return ADVISING_SENTENCES;
  return TELLING.test(question) && !asksForJoke(question) ? TOLD_SENTENCES : USUAL_SENTENCES;
}

function wishIn(text: string): LengthWish | null {
  if (YES_OR_NO.test(text)) return ONE_SENTENCE;
  const words = numberIn(WORDS, text);
  if (words !== null && words <= 30) return { sentences: words < 12 ? 1 : 2, least: 1, items: 0, words };
  const sentences = numberIn(SENTENCES, text);
  return sentences === null ? null : { sentences, least: 1, items: 0, words: ENDLESS };
}

function numberIn(pattern: RegExp, text: string): number | null {
  const found = pattern.exec(text)?.[1]?.toLowerCase();
  return found === undefined ? null : (NUMBERS[found] ?? Number(found));
}
