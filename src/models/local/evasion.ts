/**
 * How the small model gets round a question: it takes its answer back, says nothing concrete, or comes to a subject that
 * it comes to from anywhere. `npm run eval` has rules of its own for these.
 */
import { isLittleWord } from "../../lib/language.ts";
import { wordsOf } from "../../lib/words.ts";

const TAKES_BACK =
  /\b(?:not (?:quite |really |entirely )?sure (?:what|which|how|if|why|that|who|of)|not (?:what )?(?:I['’]m )?here to|not (?:what|why) I['’]m here|(?:can['’]t|cannot) (?:help|assist|answer|provide|recommend|say)|(?:do not|don['’]t) (?:know|understand|have (?:the|an?|any|personal))|I['’]m afraid|I(?:['’]d| would) rather not|not the (?:right|best) (?:person|one)|sorry for your loss|but (?:I['’]m|I am) not\b|not (?:quite |really |entirely )?sure(?=[.!])|favou?rite \w+ is always\b|(?:is|are|been) (?:always )?the ones?\b|not (?:a|an) (?:doctor|expert|professional|fan of that))\b/i;

/** Whether the text says that it does not know or cannot help. */
export const takesBack = (text: string): boolean => TAKES_BACK.test(text);

/**
 * "First, don't take anything for granted": what not to do helps nobody who has asked what to do. "You could say" is
 * followed by a speech.
 */
const AGAINST =
  /^\W*(?:(?:first|well|please),? |my advice is(?: to)?,? |you should |i recommend (?:that )?(?:you )?)*(?:just )?(?:(?:don['’]t|do not|never|not|avoid)\b|(?:you )?(?:could|should|can) say\b)/i;

export const advisesAgainst = (text: string): boolean => AGAINST.test(text);

/** "You could plant roses by the... (pausing)", "A drink of the finest?" */
export const trailsOff = (text: string): boolean => /\.\.|…|\?\W*$/.test(text);

/** A title, which it would make up, or a dislike of what it has just recommended. */
const NAMES_WORK = /["“]\p{Lu}|\bI(?:['’]m| am) not\b/u;

export const namesWork = (text: string): boolean => NAMES_WORK.test(text);

const STRAY =
  /\b(?:internet|online|web ?sites?|blogs?|podcasts?|artificial intelligence|robotics|social media|technolog\w*|tech|renewable|sustainab\w*|climate change|fashion trends?|history of (?:transport\w*|trains?|your)|france|french|articles?|clients?|customers?|company|projects?|the team|buddy|mate)\b/giu;

/** Whether the text is about such a subject, and the conversation is not. */
export function strays(text: string, conversation: string): boolean {
  const found = text.match(STRAY) ?? [];
  return found.some((subject) => !conversation.includes(subject.toLowerCase()));
}

/** What advice may say without saying anything. */
const EMPTY = new Set(
  (
    "achieve advice advise always answer anything approach appropriate art balance based basic basics begin " +
    "beginning best better bit both busy carefully certain choose concrete consider could create creative " +
    "designed different easy effective effort elegant embrace embracing ensure ensures environment essential example " +
    "essentials every everything experience explore exploring favorite favourite feel feeling feels few find " +
    "first follow friendly fun gentle get give gives giving go good great happy have hearty help helpful " +
    "helps idea ideas important inner interesting interests issue job joy just keep kind know learn let life " +
    "like little look looking lot love loved magic make makes making matter may meaningful memorable method " +
    "methods might mindful mix more most need needs new nice non old one option options own patience patient " +
    "personal pick piece place places positive possible practical profound proper quality realm recommend relevant right safe " +
    "simple simply solution solutions something special specific specifically spot spots start starting step style " +
    "suggest suit suitable suits support sure surprise take taking technique techniques thing things think " +
    "thoughtful time tips tool tools topic toxic truly try trying understand understanding unforgettable " +
    "unique use useful using variety various want way ways well whatever whether wonderful work works would " +
    "yet yourself"
  ).split(" "),
);

/** "Read" and "reading". */
export const isAkin = (a: string, b: string): boolean => a.startsWith(b.slice(0, 4)) || b.startsWith(a.slice(0, 4));

/** "I'm not a gardener": whether it denies being what its instructions say. */
export const deniesRole = (text: string, told: readonly string[]): boolean =>
  [...text.matchAll(/\bI(?:['’]m| am) not (?:a|an|the) (\p{L}+)(?=[\s.,;!?])/giu)].some(([, role = ""]) =>
    told.includes(role.toLowerCase()),
  );

const MACHINE =
  /\b(?:as an ai\b|ai (?:language )?(?:assistant|model)|language model|virtual assistant|smollm|hugging ?face|chatbot|ki-assistent)/i;
const ABOUT_MACHINES =
  /\b(?:ai|a\.i\.|ki|ia|bot|chatbot|robot|machine|model|assistant|computer|human|software|program)\b/i;

/** "As an AI language model": whether it speaks of what it is made of, and nothing that it knows does. */
export const admitsMachine = (text: string, known: readonly string[]): boolean =>
  MACHINE.test(text) && !known.some((one) => ABOUT_MACHINES.test(one));

/** A person's life, and the third person in which it is told. */
const LIFE =
  /\b(?:years?|decades?|born|raised|grew up|growing up|childhood|parents?|father|mother|sisters?|brothers?|siblings?|husband|wife|kids|family|apartment|hometown|city|human|person|career|(?:my|her|his|our) (?:whole |entire )?(?:life|journey|background)|she|he|her|his|woman|lady|eyes)\b/giu;

/** "I've been living in this city for 20 years": a small model that is asked who it is makes up a life. */
export const inventsLife = (text: string, known: ReadonlySet<string>): boolean =>
  (text.match(LIFE) ?? []).some((told) => !wordsOf(told).every((word) => known.has(word)));

/** Function words that do not tell one language from another. */
const FILLING = new Set(
  (
    "about also and any are around as at been being but by from i'd if into it's its not only or out over so some such than that that's them " +
    "then there these they things this those too up very was were when which while will with you'll you're your"
  ).split(" "),
);

/** Whether advice names nothing to do or take that the question has not named. */
export function isVague(text: string, asked: readonly string[]): boolean {
  return !wordsOf(text).some(
    (word) =>
      word.length >= 3 &&
      !isLittleWord(word) &&
      !EMPTY.has(word) &&
      !FILLING.has(word) &&
      !asked.some((other) => other.length >= 3 && isAkin(word, other)),
  );
}
