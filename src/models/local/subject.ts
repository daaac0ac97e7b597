/** What an answer is to be near in meaning: the question where that tells what it is about, and what else does. */
import type { ChatMessage } from "./protocol.ts";
import { wordsOf } from "./words.ts";

const ABOUT_SPEAKER =
  /\b(?:who are you|about yourself|your (?:job|work|life|day)|(?:what|how) do you (?:do|work|spend|live)|wer bist du|was machst du|quién eres|qué haces)(?![\p{L}])/iu;
/** The model that tells what is near knows English: a word of another language is far from all. */
const OTHER_LANGUAGE =
  /\btranslat|\b(?:in|into|to) (?:french|spanish|german|italian|portuguese|dutch|latin|japanese|chinese|russian|english)\b|\bübersetz|\btraduc|\bauf (?:englisch|französisch|spanisch|italienisch)\b|\ben (?:inglés|francés|alemán|italiano)\b/iu;
/** A message of fewer words means little without the one before it. */
const TELLING_WORDS = 4;

/** Texts of which an answer is near one; none where any answer may be right. */
export function subjectsOf(messages: readonly ChatMessage[]): string[] {
  const asked = messages.filter(({ role }) => role === "user").map(({ content }) => content);
  const question = asked.at(-1) ?? "";
  if (OTHER_LANGUAGE.test(question)) return [];
  const subjects = [question];
  if (ABOUT_SPEAKER.test(question)) subjects.push(messages.find(({ role }) => role === "system")?.content ?? question);
  const before = asked.at(-2);
  if (before !== undefined && wordsOf(question).length < TELLING_WORDS) subjects.push(`${before} ${question}`);
  return subjects;
}
