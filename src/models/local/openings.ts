/**
 * How an answer may begin, by the kind of question, in the order in which openings are tried: a model that has begun
 * with "I recommend" gives advice.
 */
import type { Language } from "../../lib/language.ts";
import {
  asksForCode,
  asksForEmail,
  asksForJoke,
  asksForRecipe,
  isStatement,
  needsSomething,
} from "../../lib/questions.ts";
import { wordsOf } from "../../lib/words.ts";

const WELCOME: Readonly<Record<Language, readonly string[]>> = {
  en: ["You are welcome"],
  de: ["Bitte sehr"],
  es: ["De nada"],
};
/** The model's own beginning. */
const OWN = "";

interface Kind {
  asked: { test(question: string): boolean };
  /** Set if the model's own beginning usually fails: it is then tried last instead of first. */
  ownLast?: true;
  openings: Readonly<Record<Language, readonly string[]>>;
}

const GREETING =
  /^\W*(?:(?:hello|hi|hey|good (?:morning|day|afternoon|evening|night)|goodbye|bye|see you|welcome|thank you|thanks)\b|(?:hallo|guten? (?:morgen|tag|abend|nacht)|tschüss|(?:vielen )?danke?|hola|buen[oa]s (?:días|tardes|noches)|adiós|(?:muchas )?gracias)(?![\p{L}]))/iu;
/** A message with more words says something besides its greeting. */
const GREETING_WORDS = 6;

/** Thanks or a farewell: a model takes them for the beginning of a conversation. */
const PARTING = /\b(?:(?:good)?bye|night|see you|thank|thanks|tschüss|danke?|adiós|gracias)(?![\p{L}])/iu;

/** Whether a message is only a greeting, a farewell or thanks. */
export const isGreeting = (message: string): boolean =>
  GREETING.test(message) && !message.includes("?") && wordsOf(message).length <= GREETING_WORDS;

const ADVICE =
  /\b(?:(?:what|how|where|which)\b.{0,30}\b(?:should|can|could|do) (?:i|we)|any (?:ideas?|tips|advice)|what helps|(?:what|where|which)(?: is|['’]s| would be| are) (?:(?:a|the|some) )?(?:good|nice|best)\b.{0,30}\bfor|(?:soll|kann) ich|(?:puedo|debo))(?![\p{L}])/iu;

/** Works of which there are kinds. Left alone, the model makes up their titles; it knows their genres. */
const WORKS = [
  { works: "books", verb: "read", nouns: "books?|novels?" },
  { works: "films", verb: "watch", nouns: "films?|movies?|series" },
  { works: "music", verb: "listen to|hear", nouns: "music|songs?|albums?" },
].map(({ works, verb, nouns }) => ({
  openings: [`I recommend ${works} in genres such as`],
  asked: new RegExp(
    `\\b(?:(?:should|can|could) \\w+(?: \\w+)? (?:${verb})|(?:recommend|suggest)\\b.{0,30}\\b(?:${nouns})|(?:which|what) (?:${nouns}) (?:should|would|could|can|do) (?:you|i|we))\\b`,
    "i",
  ),
}));

/** Whether somebody asks what to read, watch or listen to. */
export const asksForWorks = (question: string): boolean => WORKS.some(({ asked }) => asked.test(question));

export const asksForAdvice = (question: string): boolean => ADVICE.test(question) || asksForWorks(question);

const HOW_MUCH = /\bhow (?:often|long|much|many)\b.{0,30}\bshould (?:i|we)\b/i;
const ASKS_WHAT_TO_DO = /\bhow\b|\bdo\W*$|\bhelps\b/i;
const NAMES_THINGS = /^\W*(?:I recommend\b|you (?:could|can)(?: always)? (?:try|use)\b(?! to\b))/i;

/**
 * What the first sentence of advice goes on with where it would end: the model praises before it names anything, and
 * after these words it must. Null if the question asks for no such advice.
 */
export function continuationFor(question: string): ((sentence: string) => string) | null {
  if (!asksForAdvice(question) || asksForWorks(question) || HOW_MUCH.test(question)) return null;
  const toDo = ASKS_WHAT_TO_DO.test(question);
  return (sentence) => (toDo && !NAMES_THINGS.test(sentence) ? ", for example by" : ", such as");
}

const NAMES_NEXT = /\b(?:such as|for example by) ?$/i;
const GENRES_NEXT = /\bgenres such as ?$/i;

/** "such as:" would begin a list, which is cut, and a capital after "genres such as" a title, which is made up. */
export function mayFollow(text: string, next: string): boolean {
  if (!NAMES_NEXT.test(text)) return true;
  return (GENRES_NEXT.test(text) ? /^\s*\p{Ll}/u : /^\s*\p{L}/u).test(next);
}

/** It has neither a window nor a newspaper. */
const WEATHER =
  /\b(?:what|how)(?: is|['’]?s| will) the (?:weather|forecast|temperature)\b|\bis it (?:raining|snowing|sunny|windy)\b/i;
const NEWS = /\bwhat(?: is|['’]?s| are)(?: in)? the (?:latest |today['’]s )?(?:news|headlines)\b|\bany news\b/i;

/** Whether it asks for what the host's network might tell, and the model cannot. */
export const asksForNews = (question: string): boolean => WEATHER.test(question) || NEWS.test(question);

/** "I'm Tom!", but not "I'm Spanish". */
const MEETS =
  /^\W*(?:(?:[Hh]ello|[Hh]i|[Hh]ey|[Gg]ood (?:morning|day|afternoon|evening))\b\W*)?(?:(?:[Mm]y name(?: is|['’]?s)|(?:[Yy]ou can |[Pp]lease )?[Cc]all me) |I(?: am|['’]m) (?!\p{L}+(?:ish|ese|ian|ean|can|ch|man|eek|iss|ic)\b))(?<name>\p{Lu}\p{L}+)\b/u;

/** How the language of code is written after its mark. */
const CODE_LANGUAGES: readonly [asked: RegExp, mark: string][] = [
  [/\bpython\b/i, "python"],
  [/\b(?:bash|shell)\b/i, "bash"],
  [/\bsql\b/i, "sql"],
  [/\b(?:javascript|js|node)\b/i, "javascript"],
  [/\btypescript\b/i, "typescript"],
  [/\bhtml\b/i, "html"],
  [/\bcss\b/i, "css"],
];

/** "My favourite season is", "My favourite time of the year is" */
const FAVOURITE = /\byour (favou?rite \p{L}+(?: (?!(?:and|or|to)\b)\p{L}+){0,4})\W*$/iu;

const KINDS: readonly Kind[] = [
  {
    ownLast: true,
    asked: /\bhow (?:are you|is it going|do you do)(?: (?:today|doing|this \w+))?\W*$/i,
    openings: { en: ["I am well, thank you", "I am doing well"], de: [], es: [] },
  },
  {
    ownLast: true,
    asked:
      /\b(?:your name|who are you|are you called|wie heißt du|wer bist du|dein name|te llamas|tu nombre|quién eres)(?![\p{L}])/iu,
    openings: { en: ["My name is", "I am"], de: ["Ich heiße", "Mein Name ist"], es: ["Me llamo", "Mi nombre es"] },
  },
  {
    ownLast: true,
    asked: /^\W*(?:please,? )?(?:remember|note|keep in mind|(?:don['’]t|do not) forget)\b[^?]*$/i,
    openings: { en: ["I will remember that"], de: [], es: [] },
  },
  {
    ownLast: true,
    asked:
      /\b(?:rewrite|rephrase|reword|(?:make|say|put|write) (?:this|it|that))\b[^:]*\b(?:polite|kind|friendl|nice|formal|gentl)/i,
    openings: {
      en: ["Could you please", "I am sorry, but", "I would be grateful if"],
      de: ["Könnten Sie bitte", "Es tut mir leid, aber"],
      es: ["Por favor,", "Lo siento, pero"],
    },
  },
  {
    ownLast: true,
    asked: WEATHER,
    openings: { en: ["I cannot look outside and see the weather"], de: [], es: [] },
  },
  {
    ownLast: true,
    asked: NEWS,
    openings: { en: ["I do not know, because I get no news"], de: [], es: [] },
  },
  {
    ownLast: true,
    asked: { test: asksForJoke },
    openings: { en: ["What do you call a", "Why did the"], de: [], es: [] },
  },
  ...WORKS.map(({ asked, openings }): Kind => ({ ownLast: true, asked, openings: { en: openings, de: [], es: [] } })),
  {
    ownLast: true,
    asked: /\bwhat (?:can|should|could) (?:i|we) do\b/i,
    openings: { en: ["You could", "I recommend", "My advice is to", "You should"], de: [], es: [] },
  },
  {
    ownLast: true,
    asked: HOW_MUCH,
    openings: { en: ["At least", "About"], de: [], es: [] },
  },
  {
    ownLast: true,
    asked: /\bhow (?:can|should|could|do) (?:i|we)\b/i,
    openings: { en: ["Start by", "You can use", "I recommend", "You could"], de: [], es: [] },
  },
  {
    ownLast: true,
    asked: ADVICE,
    openings: {
      en: ["I recommend", "You could", "You should"],
      de: ["Du kannst", "Du solltest"],
      es: ["Puedes", "Debes"],
    },
  },
  {
    asked: /(?:^|[.!?] )(?:(?:should|can|could|may|shall) (?:i|we)|soll ich|kann ich|debo|puedo)(?![\p{L}])/iu,
    openings: { en: ["Yes, you should", "You could"], de: ["Ja, du"], es: ["Sí, puedes"] },
  },
  {
    ownLast: true,
    asked: /\bprefer\b.* or |\bwhich\b.*\b(?:better|best)\b|^\W*\w+ or \w+\W*$/i,
    openings: { en: ["I prefer", "I like"], de: [], es: [] },
  },
  {
    ownLast: true,
    asked: /\b(?:do|would) you (?:like|prefer|enjoy)\b|\bmagst du\b|\bte gusta\b/iu,
    openings: { en: ["I like", "I love", "I do not like"], de: ["Ich mag"], es: ["Me gusta"] },
  },
  { ownLast: true, asked: { test: asksForRecipe }, openings: { en: ["You need"], de: [], es: [] } },
  { ownLast: true, asked: { test: asksForEmail }, openings: { en: ["Subject:"], de: [], es: [] } },
  { ownLast: true, asked: { test: needsSomething }, openings: { en: ["You could"], de: [], es: [] } },
  {
    asked: { test: isStatement },
    openings: { en: ["That is", "I hope that you", "You"], de: [], es: [] },
  },
];

/** At least one; an empty one leaves the beginning to the model. */
export function openingsFor(question: string, language: Language): readonly string[] {
  const met = language === "en" ? MEETS.exec(question)?.groups?.name : undefined;
  if (met !== undefined && !question.includes("?")) return [`Nice to meet you, ${met}!`, OWN];
  if (isGreeting(question)) {
    const greetings = greetingsFor(question, language);
    return PARTING.test(question) ? [...greetings, OWN] : [OWN, ...greetings];
  }
  const favourite = language === "en" ? FAVOURITE.exec(question)?.[1] : undefined;
  if (favourite !== undefined && !/\b(?:one|single) word\b/i.test(question)) {
    return [`My ${favourite} is`, `My ${favourite} has always been`, OWN];
  }
  if (asksForCode(question)) {
    const mark = CODE_LANGUAGES.find(([asked]) => asked.test(question))?.[1];
    if (mark !== undefined) return [`\`\`\`${mark}\n`, OWN];
  }
  const kind = KINDS.find(({ asked, openings }) => asked.test(question) && openings[language].length > 0);
  const openings = kind?.openings[language] ?? [];
  return kind?.ownLast && openings.length > 0 ? [...openings, OWN] : [OWN, ...openings];
}

/** Openings that repeat only the greeting and continue: otherwise a model repeats the whole message. */
function greetingsFor(message: string, language: Language): readonly string[] {
  const greeting = GREETING.exec(message)?.[0].trim() ?? "";
  if (/thank|dank|gracias/i.test(greeting)) return WELCOME[language];
  if (language !== "en") return [`${greeting},`];
  if (/night/i.test(greeting)) return ["Good night! Sleep well"];
  return PARTING.test(greeting) ? ["Goodbye! I hope"] : [`${greeting}! It is`];
}
