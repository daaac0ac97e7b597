/**
 * How an answer may begin, by the kind of question: a beginning that failed is written anew from one of these, since a
 * model that has begun with "You could" gives advice.
 */
import type { Language } from "../../lib/language.ts";

interface Kind {
  asked: RegExp;
  openings: Readonly<Record<Language, readonly string[]>>;
}

const KINDS: readonly Kind[] = [
  {
    asked:
      /\b(?:your name|who are you|called|wie heißt du|wer bist du|dein name|te llamas|tu nombre|quién eres)(?![\p{L}])/iu,
    openings: { en: ["My name is", "I am"], de: ["Ich heiße", "Mein Name ist"], es: ["Me llamo", "Mi nombre es"] },
  },
  {
    asked:
      /\b(?:rewrite|rephrase|reword|(?:make|say|put|write) (?:this|it|that))\b[^:]*\b(?:polite|kind|friendl|nice|formal|gentl)/i,
    openings: {
      en: ["Could you please", "I am sorry, but", "I would be grateful if"],
      de: ["Könnten Sie bitte", "Es tut mir leid, aber"],
      es: ["Por favor,", "Lo siento, pero"],
    },
  },
  {
    asked:
      /\b(?:(?:what|how|where|which)\b.{0,30}\b(?:should|can|could|do) (?:i|we)|any (?:ideas?|tips|advice)|what helps|(?:soll|kann) ich|(?:puedo|debo))(?![\p{L}])/iu,
    openings: { en: ["You could", "Try to", "You should"], de: ["Du kannst", "Du solltest"], es: ["Puedes", "Debes"] },
  },
  {
    asked: /\b(?:do|would) you (?:like|prefer|enjoy)\b|\bmagst du\b|\bte gusta\b/iu,
    openings: { en: ["I like", "I love", "I do not like"], de: ["Ich mag"], es: ["Me gusta"] },
  },
];

/** None where any beginning will do. */
export const openingsFor = (question: string, language: Language): readonly string[] =>
  KINDS.find(({ asked }) => asked.test(question))?.openings[language] ?? [];
