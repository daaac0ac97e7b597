/** Detects which of three languages a text is in, by common function words, and whether one asks for another language. */
export type Language = "en" | "de" | "es";

const LITTLE_WORDS: Readonly<Record<Language, ReadonlySet<string>>> = {
  en: new Set(
    "the a an is are am was to of and in that it you i i'm i've i'd i'll my your for with have has do does not what can we be this who how".split(
      " ",
    ),
  ),
  de: new Set(
    "der die das und ist ich du sie wir ihr nicht ein eine einen einem einer zu mit auf für bist bin hat habe mein dein auch wie was dir mir im den dem".split(
      " ",
    ),
  ),
  es: new Set(
    "el la los las y es soy eres yo tú un una de en que no con para me te se mi tu por muy está estoy como qué cómo del al te gusta".split(
      " ",
    ),
  ),
};

/** In any of the languages; the word is in lower case. */
export const isLittleWord = (word: string): boolean => Object.values(LITTLE_WORDS).some((words) => words.has(word));

/** English if no word decides. */
export function languageOf(text: string): Language {
  const counts = countLittleWords(text);
  if (counts.de > counts.en && counts.de >= counts.es) return "de";
  return counts.es > counts.en ? "es" : "en";
}

export function countLittleWords(text: string): Record<Language, number> {
  const words =
    text
      .normalize()
      .toLowerCase()
      .replaceAll("’", "'")
      .match(/[\p{L}]+(?:'[\p{L}]+)?/gu) ?? [];
  const count = (language: Language) => words.filter((word) => LITTLE_WORDS[language].has(word)).length;
  return { en: count("en"), de: count("de"), es: count("es") };
}

const OTHER_LANGUAGE =
  /\btranslat|\b(?:in|into|to) (?:french|spanish|german|italian|portuguese|dutch|latin|japanese|chinese|russian|english)\b|(?<!\p{L})übersetz|\btraduc|\bauf (?:englisch|französisch|spanisch|italienisch)\b|\ben (?:inglés|francés|alemán|italiano)\b/iu;

/** Whether an answer in another language is asked for. */
export const asksForOtherLanguage = (question: string): boolean => OTHER_LANGUAGE.test(question);
