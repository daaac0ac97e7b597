/**
 * What makes an answer good, as far as a program can tell. The rules share only the splitting into words with the
 * model's guards, so that a faulty guard is noticed here.
 */

import { containsRun, longestRun, sentencesOf, wordsOf } from "../src/lib/words.ts";
import type { Given, Variant } from "./answers.ts";
import type { Case, Half, Persona } from "./cases.ts";

export const RULES = [
  "echo",
  "leak",
  "loop",
  "speaker",
  "says",
  "gives",
  "refuses",
  "stray",
  "role",
  "past",
  "voice",
  "length",
  "whole",
  "language",
  "topic",
] as const;
export type Rule = (typeof RULES)[number];

export interface Answer {
  text: string;
  /** The model's system prompt. */
  instructions: string;
  /** The cosine similarity to the closest reference. */
  nearness: number;
}

/**
 * Chosen without any model's answers: compared with the other references of its case, 9 of 10 references are above it;
 * compared with those of other cases, 1 of 20 (checked by `test/eval/rules.test.ts`).
 */
export const NEAR_ENOUGH = 0.35;
/** The limit for answers whose length was not asked for. */
const MAX_WORDS = 130;

/** The rules that the answer breaks; empty for a good one. */
export function judge(asked: Case, persona: Persona, answer: Answer): Rule[] {
  const { text, instructions, nearness } = answer;
  const broken: Record<Rule, boolean> = {
    echo: echoes(text, asked.say),
    leak: leaks(text, instructions),
    loop: loops(text),
    speaker: /(^|\n)\s*\**(user|human|assistant|system|you|me)\**\s*:/i.test(text),
    says: !(asked.says ?? []).every((wanted) => containsRun(wordsOf(text), wordsOf(wanted))),
    gives: asked.gives !== undefined && !gives(text, asked.gives),
    refuses: refuses(text, asked),
    stray: strays(text, asked, persona),
    role: mixesRoles(text, asked, persona),
    past: inventsPast(text, asked, persona),
    voice: asked.voice === true && !hasVoice(text, persona),
    length: !hasLength(text, asked, persona),
    whole: !isWhole(text),
    language: asked.language !== "any" && !isLanguage(text, persona.language),
    topic: nearness < NEAR_ENOUGH,
  };
  return RULES.filter((rule) => broken[rule]);
}

/** Most of the question repeated, or one of its sentences as the answer's first. */
export function echoes(text: string, question: string): boolean {
  const asked = wordsOf(question);
  const first = wordsOf(sentencesOf(text)[0] ?? "").join(" ");
  if (
    asked.length >= 3 &&
    sentencesOf(question).some((one) => wordsOf(one).length >= 3 && wordsOf(one).join(" ") === first)
  )
    return true;
  return asked.length >= 5 && longestRun(wordsOf(text), asked) >= 0.8 * asked.length;
}

/** A heading, the name of a file, a sentence of the instructions, or seven of their words in a row. */
export function leaks(text: string, instructions: string): boolean {
  if (/(^|\n)#{1,6} |\b[A-Z]+\.md\b|<\|/.test(text)) return true;
  const words = wordsOf(text);
  const told = sentencesOf(instructions).map((sentence) => wordsOf(sentence));
  if (told.some((sentence) => sentence.length >= 3 && containsRun(words, sentence))) return true;
  return longestRun(words, wordsOf(instructions)) >= 7;
}

/** A sentence of four words or more is repeated, or eight words in a row. */
export function loops(text: string): boolean {
  const seen = new Set<string>();
  const again = (key: string) => seen.size === seen.add(key).size;
  const sentences = sentencesOf(text).map(wordsOf);
  if (sentences.some((words) => words.length >= 4 && again(words.join(" ")))) return true;
  const words = wordsOf(text);
  seen.clear();
  return words.some((_, at) => at + 8 <= words.length && again(words.slice(at, at + 8).join(" ")));
}

/**
 * Whether it names one of these words, as one or several ("shoe" where "shoes" is wanted): a vague answer ("Just do what
 * feels right") names none.
 */
export function gives(text: string, wanted: string): boolean {
  const words = wordsOf(text);
  const isIn = (one: string) =>
    words.some(
      (word) => [one, `${one}s`, one.replace(/s$/, "")].includes(word) || (one.length >= 4 && word.startsWith(one)),
    );
  return wanted.toLowerCase().split(" ").some(isIn);
}

const TAKES_BACK =
  /\b(?:(?:not|n't) (?:quite |really |entirely )?(?:sure|certain) (?:what|which|how|if|why|that|who)|(?:not|n't) (?:what )?(?:I'm )?here to|(?:not|n't) (?:what|why) I(?:'m| am) here|can(?:'t|not) (?:help|assist|answer|provide|recommend|say)|(?:do not|don't|did not|didn't) (?:know|understand|have the (?:ability|capability))|I(?:'m| am) (?:afraid|sorry),? (?:but )?(?:I|you|it|that) (?:can|could|do|am|is|was|not|')|I'd rather not|not (?:the )?(?:right|best) (?:person|one)|sorry for your loss)\b/i;
/** Where advice begins with what not to do, and says nothing else to do before the end of the sentence. */
const AGAINST =
  /^\W*(?:first,? |my advice is(?: to)?,? |you should |i recommend (?:that )?(?:you )?)?(?:just )?(?:don't|do not|never|not)\b/i;

/** Says that it cannot or will not answer, or does not understand; or advice that begins with what not to do. A rewriting may. */
export function refuses(text: string, { kind }: Pick<Case, "kind">): boolean {
  const plain = text.replaceAll("’", "'");
  if (kind === "rewriting") return false;
  return TAKES_BACK.test(plain) || (kind === "advice" && AGAINST.test(sentencesOf(plain)[0] ?? ""));
}

/** Subjects that small models come to from anywhere. */
const STRAY =
  "internet online website blog podcast smartphone app technology technologies tech robotics blockchain renewable climate fashion france french wikipedia article video videos team project clients customers company industry nonprofit chatbot".split(
    " ",
  );

/** Comes to such a subject, though neither the conversation nor a reference has anything of it. */
export function strays(
  text: string,
  asked: Pick<Case, "say" | "like" | "gives">,
  { soul }: Pick<Persona, "soul">,
): boolean {
  const known = new Set(wordsOf([asked.say, ...asked.like, asked.gives ?? "", soul ?? ""].join(" ")));
  return wordsOf(text).some((word) => STRAY.includes(word) && !known.has(word));
}

/**
 * Takes one side for the other: calls the user by its own name, has what the user has ("my roses" of theirs), or denies
 * being what its SOUL.md says that it is.
 */
export function mixesRoles(
  text: string,
  { say }: Pick<Case, "say">,
  { name, soul }: Pick<Persona, "name" | "soul">,
): boolean {
  const plain = text.replaceAll("’", "'");
  const called = new RegExp(
    `(?<!\\b(?:I'm|I am|is|it's|me|name)),? (?<=, )${name}(?=[.!?,])|^(?:hello|hi|hey|dear|good \\w+),? ${name}\\b`,
    "iu",
  );
  if (called.test(plain)) return true;
  const theirs = [...say.matchAll(/\b(?:my|our) (\p{L}{3,})/giu)].flatMap(([, noun]) => noun ?? []);
  if (theirs.some((noun) => new RegExp(`\\b(?:my|our) ${noun}\\b`, "iu").test(plain))) return true;
  const denied = [...plain.matchAll(/\bI(?:'m| am) not (?:a|an|the) (\p{L}+)/giu)].flatMap(
    ([, noun]) => noun?.toLowerCase() ?? [],
  );
  return denied.some((noun) => wordsOf(soul ?? "").includes(noun));
}

const PAST =
  /\b(?:(?:\d+|many|several|\p{L}+ty|\p{L}+teen) years|decades?|was born|(?:was |were )?raised|grew up|(?:my|her|his) (?:childhood|youth|career|parents?|father|mother|sisters?|brothers?|siblings?|husband|wife|kids|children|daughters?|sons?)|as a (?:child|boy|girl)|I (?:once |used to )(?:live|work)(?:d|ed)?)\b/giu;

/** Asked about itself, it tells of a person's past that its owner has not given it: "I have lived here for 20 years". */
export function inventsPast(
  text: string,
  { kind, say, like }: Pick<Case, "kind" | "say" | "like">,
  { soul }: Pick<Persona, "soul">,
): boolean {
  const known = [say, ...like, soul ?? ""].join("\n").toLowerCase();
  return kind === "itself" && (text.match(PAST) ?? []).some((told) => !known.includes(told.toLowerCase()));
}

export function hasVoice(text: string, { voice }: Pick<Persona, "voice">): boolean {
  const wanted = new Set(voice.map((word) => word.toLowerCase()));
  return wordsOf(text).some((word) => wanted.has(word) || wanted.has(word.split("'")[0] ?? ""));
}

export function hasLength(text: string, asked: Case, persona: Pick<Persona, "length">): boolean {
  const words = wordsOf(text).length;
  if (words === 0) return false;
  if (asked.least !== undefined) return words >= asked.least;
  const own = asked.sentences ?? asked.words;
  const { sentences = Number.POSITIVE_INFINITY, words: most = MAX_WORDS } =
    own === undefined ? (persona.length ?? {}) : asked;
  return words <= most && sentencesOf(text).filter((one) => wordsOf(one).length > 2).length <= sentences;
}

/** Whether it ends like a sentence, also with an aside such as "(smiling)" after it, is signed, or is too short to be one. */
export const isWhole = (text: string): boolean =>
  /\n[^\n.!?]{1,30},\s*\n\s*\p{L}[^\n]{1,30}\s*$/u.test(text) ||
  /[.!?…~][\s"'”’»)*\]]*(?:\([^()]*\)\s*|\*[^*]*\*\s*)?$|\p{Extended_Pictographic}\s*$/u.test(text) ||
  wordsOf(text).length <= 3;

// "Me" is Spanish too: without "please" and "could", "Could you please leave me alone." would be as Spanish as English.
const LITTLE_WORDS: Readonly<Record<Persona["language"], Set<string>>> = {
  en: new Set(
    "the a an is are am to of and in that it you i i'm my for with have on be do not what can your we they please could would should".split(
      " ",
    ),
  ),
  de: new Set(
    "der die das und ist ich du sie wir ihr nicht ein eine einen zu in mit auf für es sind bin habe mein dein auch wie was gut danke hallo guten bitte im den dem".split(
      " ",
    ),
  ),
  es: new Set(
    "el la los las y es yo tú un una de en que no con para me te se mi tu por muy gracias hola buenos soy estoy está como qué sí lo del al más".split(
      " ",
    ),
  ),
};

/** Whether it has more function words of its language than of any other; three words are too few to tell. */
export function isLanguage(text: string, language: Persona["language"]): boolean {
  const words = wordsOf(text);
  const count = (one: Persona["language"]) => words.filter((word) => LITTLE_WORDS[one].has(word)).length;
  const own = count(language);
  const others = (Object.keys(LITTLE_WORDS) as Persona["language"][]).filter((one) => one !== language);
  return words.length <= 3 || (own > 0 && others.every((one) => count(one) < own));
}

/** An answer with its broken rules. */
export interface Judged extends Given {
  variant: Variant;
  seed: number;
  nearness: number;
  broken: Rule[];
  asked: Case;
  persona: Persona;
  half: Half;
}
