/**
 * How an answer may begin, by the kind of question. When a beginning has failed, the next starts with one of these: a
 * model that has begun with "You could" gives advice.
 */
import type { Language } from "../../lib/language.ts";
import { wordsOf } from "./words.ts";

const WELCOME: Readonly<Record<Language, readonly string[]>> = {
  en: ["You are welcome"],
  de: ["Bitte sehr"],
  es: ["De nada"],
};

interface Kind {
  asked: RegExp;
  openings: Readonly<Record<Language, readonly string[]>>;
}

const GREETING =
  /^\W*(?:(?:hello|hi|hey|good (?:morning|day|afternoon|evening|night)|goodbye|bye|see you|welcome|thank you|thanks)\b|(?:hallo|guten? (?:morgen|tag|abend|nacht)|tschüss|(?:vielen )?danke?|hola|buen[oa]s (?:días|tardes|noches)|adiós|(?:muchas )?gracias)(?![\p{L}]))/iu;
/** A message with more words says something besides its greeting. */
const GREETING_WORDS = 6;

/** Whether a message is a greeting, a farewell or thanks, and no more. */
export const isGreeting = (message: string): boolean =>
  GREETING.test(message) && !message.includes("?") && wordsOf(message).length <= GREETING_WORDS;

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
    asked: /(?:^|[.!?] )(?:(?:should|can|could|may|shall) (?:i|we)|soll ich|kann ich|debo|puedo)(?![\p{L}])/iu,
    openings: { en: ["Yes, you should", "You could"], de: ["Ja, du"], es: ["Sí, puedes"] },
  },
  {
    asked: /\b(?:do|would) you (?:like|prefer|enjoy)\b|\bmagst du\b|\bte gusta\b/iu,
    openings: { en: ["I like", "I love", "I do not like"], de: ["Ich mag"], es: ["Me gusta"] },
  },
  {
    // Somebody tells something about themselves.
    asked: /^(?:i|i['’]m|i['’]ve|my|we|our)\b[^?]*$/i,
    openings: { en: ["It sounds like you", "I hope that you", "You"], de: [], es: [] },
  },
];

/** Empty if any beginning will do. */
export function openingsFor(question: string, language: Language): readonly string[] {
  const greeting = isGreeting(question) ? GREETING.exec(question)?.[0].trim() : undefined;
  if (greeting !== undefined) return /thank|dank|gracias/i.test(greeting) ? WELCOME[language] : [`${greeting},`];
  return KINDS.find(({ asked }) => asked.test(question))?.openings[language] ?? [];
}
