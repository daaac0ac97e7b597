/** What an answer is to be near in meaning: the question where that tells what it is about, and what else does. */
import type { ChatMessage } from "./protocol.ts";
import { wordsOf } from "./words.ts";

export interface Subject {
  /** An answer is near one of them; there are none where any answer may be right. */
  texts: string[];
  /** The cosine that is near enough, from -1 to 1. */
  enough: number;
}

/** Less near than this, an answer is about something else. */
const ABOUT_THE_SAME = 0.3;
/** What says the same in other words is nearer than an answer is to its question. */
const SAYS_THE_SAME = 0.35;
const REWRITING =
  /\b(?:(?:rewrite|rephrase|reword|paraphrase)\b|(?:make|say|put|write) (?:this|it|that)\b)[^:]*:\s*(\S.*)/isu;
const ABOUT_SPEAKER =
  /\b(?:who are you|about yourself|your (?:job|work|life|day)|(?:what|how) do you (?:do|work|spend|live)|wer bist du|was machst du|quién eres|qué haces)(?![\p{L}])/iu;
/** The model that tells what is near knows English: a word of another language is far from all. */
const OTHER_LANGUAGE =
  /\btranslat|\b(?:in|into|to) (?:french|spanish|german|italian|portuguese|dutch|latin|japanese|chinese|russian|english)\b|(?<!\p{L})übersetz|\btraduc|\bauf (?:englisch|französisch|spanisch|italienisch)\b|\ben (?:inglés|francés|alemán|italiano)\b/iu;
/** Its answer is a word that lies near nothing. */
const YES_OR_NO = /\byes or no\b|\bja oder nein\b|\bsí o no\b/iu;
/** A message of fewer words means little without the one before it. */
const TELLING_WORDS = 4;

export function subjectOf(messages: readonly ChatMessage[]): Subject {
  const asked = messages.filter(({ role }) => role === "user").map(({ content }) => content);
  const question = asked.at(-1) ?? "";
  if (OTHER_LANGUAGE.test(question) || YES_OR_NO.test(question)) return { texts: [], enough: -1 };
  const same = REWRITING.exec(question)?.[1];
  if (same !== undefined) return { texts: [same], enough: SAYS_THE_SAME };
  const texts = [question];
  if (ABOUT_SPEAKER.test(question)) texts.push(messages.find(({ role }) => role === "system")?.content ?? question);
  const before = asked.at(-2);
  if (before !== undefined && wordsOf(question).length < TELLING_WORDS) texts.push(`${before} ${question}`);
  return { texts, enough: ABOUT_THE_SAME };
}
