/** What an answer should be close to in meaning: usually the question, and whatever else says what it is about. */
import { asksForOtherLanguage } from "../../lib/language.ts";
import { asksForCode } from "../../lib/questions.ts";
import { wordsOf } from "../../lib/words.ts";
import { asksForAdvice, asksForWorks } from "./openings.ts";
import type { ChatMessage } from "./protocol.ts";

export interface Subject {
  /** An answer must be close to one of them. Empty if any answer may be right. */
  texts: string[];
  /** The cosine that is close enough, from -1 to 1. */
  enough: number;
  /** The cosine that the first beginnings need; the best of them is used if none has it. At least `enough`. */
  wanted: number;
}

/** Below this, an answer is about something else. */
const ABOUT_THE_SAME = 0.3;
/** Advice that is less close often names something that is of no use here. */
const ADVISES_ON_IT = 0.5;
/** A paraphrase is closer to its original than an answer is to its question. */
const SAYS_THE_SAME = 0.35;
const REWRITING =
  /\b(?:(?:rewrite|rephrase|reword|paraphrase)\b|(?:make|say|put|write) (?:this|it|that)\b)[^:]*:\s*(\S.*)/isu;
const ABOUT_SPEAKER =
  /\b(?:who are you|about yourself|your (?:job|work|life|day)|(?:what|how) do you (?:do|work|spend|live)|wer bist du|was machst du|quién eres|qué haces)(?![\p{L}])/iu;
/** The answer is a word that is close to nothing. */
const YES_OR_NO = /\byes or no\b|\bja oder nein\b|\bsí o no\b/iu;
/** A message of fewer words may mean little without the one before it. */
const TELLING_WORDS = 8;

export function subjectOf(messages: readonly ChatMessage[]): Subject {
  const asked = messages.filter(({ role }) => role === "user").map(({ content }) => content);
  const question = asked.at(-1) ?? "";
  // The embedding model knows only English: a word of another language is close to nothing, and so is code.
  if (asksForOtherLanguage(question) || YES_OR_NO.test(question) || asksForCode(question))
    return { texts: [], enough: -1, wanted: -1 };
  const same = REWRITING.exec(question)?.[1];
  if (same !== undefined) return { texts: [same], enough: SAYS_THE_SAME, wanted: SAYS_THE_SAME };
  const texts = [question];
  if (ABOUT_SPEAKER.test(question)) texts.push(messages.find(({ role }) => role === "system")?.content ?? question);
  const before = asked.at(-2);
  if (before !== undefined && wordsOf(question).length < TELLING_WORDS) texts.push(`${before} ${question}`);
  // Works are recommended in the same words, whatever the question says besides.
  const isAdvice = asksForAdvice(question) && !asksForWorks(question);
  return { texts, enough: ABOUT_THE_SAME, wanted: isAdvice ? ADVISES_ON_IT : ABOUT_THE_SAME };
}
