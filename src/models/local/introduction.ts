/**
 * How an agent introduces itself. Its name is the one fact that its instructions always contain, and a small model gets
 * it wrong.
 */
import type { Language } from "../../lib/language.ts";
import { wordsOf } from "../../lib/words.ts";
import type { ChatMessage } from "./protocol.ts";

/** A line of the instructions, as src/runtime/short-prompt.ts writes it. */
const NAME_LINE = /^(?:Your name is|Du heißt|Te llamas) (.+)\.$/mu;
const INTRODUCES = /(?<![\p{L}])(?:my name is|ich heiße|mein name ist|me llamo|mi nombre es)$/iu;
const ASKED =
  /\b(?:(?:what(?: is|['’]s)|tell me|say|know|have) your name|who are you|what are you called|wie heißt du|wer bist du|(?:was|wie) ist dein name|cómo te llamas|cuál es tu nombre|quién eres)(?![\p{L}])/iu;

/** The agent's name in its instructions, or null. */
export function nameTold(messages: readonly ChatMessage[]): string | null {
  return NAME_LINE.exec(messages.find(({ role }) => role === "system")?.content ?? "")?.[1] ?? null;
}

/** Whether the text ends where a name must follow. */
export const introduces = (text: string): boolean => INTRODUCES.test(text);

export const asksForName = (question: string): boolean => ASKED.test(question);

const ASKS_WHO =
  /\b(?:who are you|who (?:made|created|built|trained) you|what are you(?=\W*$)|(?:what|which) (?:\w+ )?(?:model|ai|bot) are you|are you (?:an ai|a bot|chatgpt|gpt|claude|gemini|human|real)\b|(?:about|describe|introduce) yourself|wer bist du|über dich|quién eres|(?:háblame|cuéntame) (?:de|sobre) ti)(?![\p{L}])/iu;

/** Whether the question is who or what the agent is, beyond its name. */
export const asksWho = (question: string): boolean => ASKS_WHO.test(question);

/** "You are a warm, well-read librarian." */
const ROLES: Readonly<Record<Language, RegExp>> = {
  en: /(?<![\p{L}])You are ((?:an?|the) [^.;:!?\n]+)/u,
  de: /(?<![\p{L}])Du bist ((?:eine?|der|die|das) [^.;:!?\n]+)/u,
  es: /(?<![\p{L}])Eres ((?:una?|el|la) [^.;:!?\n]+)/u,
};
/** With more words of its instructions, an answer repeats them (LEAK_WORDS in guards.ts). */
const ROLE_WORDS = 5;

/** The second is for who answers in few words. */
const INTRODUCTIONS: Readonly<Record<Language, (name: string, role: string) => string[]>> = {
  en: (name, role) => [`My name is ${name}, and I am ${role}`, `I am ${name}, ${role}`],
  de: (name, role) => [`Ich bin ${name}, ${role}`],
  es: (name, role) => [`Soy ${name}, ${role}`],
};

const roleTold = (messages: readonly ChatMessage[], language: Language): string | undefined =>
  ROLES[language].exec(messages.find(({ role }) => role === "system")?.content ?? "")?.[1]?.trim();

/** Whether its instructions call it an assistant, and no other character. In English. */
export const isAssistant = (messages: readonly ChatMessage[]): boolean =>
  /\bassistant\b/i.test(roleTold(messages, "en") ?? "");

/**
 * How an answer to `asksWho` begins, in its owner's words: left alone, a small model makes up a character and a past.
 * Empty for another question, or if the instructions tell no name or no short role.
 */
export function introductionsFor(question: string, messages: readonly ChatMessage[], language: Language): string[] {
  const name = nameTold(messages);
  const role = roleTold(messages, language);
  const isShort = role !== undefined && wordsOf(role).length <= ROLE_WORDS;
  return asksWho(question) && name !== null && isShort ? INTRODUCTIONS[language](name, role) : [];
}

const INTRODUCTION =
  /(?:\bmy name(?: is|['’]s)|\bcall me|\b(?:ich heiße|mein name ist)|\b(?:me llamo|mi nombre es))\s+(\p{L}+)|\bI(?: am|['’]m) (\p{Lu}\p{Ll}+)/giu;
/** The beginning of such an introduction, up to part of the name. */
const HALF_INTRODUCTION =
  /(?<![\p{L}])(?:my name(?: is|['’]s)?|call me|mein name(?: ist)?|ich heiße|me llamo|mi nombre(?: es)?|I(?: am|['’]m))\s*\p{L}*$/iu;

/** Where an introduction may begin whose name is not whole yet; the text's length if none does. */
export const halfIntroduction = (text: string): number => HALF_INTRODUCTION.exec(text)?.index ?? text.length;

/** Whether the text introduces its speaker by a name that appears nowhere in the conversation. */
export function givesOtherName(text: string, known: ReadonlySet<string>): boolean {
  for (const [whole, introduced, am] of text.matchAll(INTRODUCTION)) {
    const name = introduced ?? am ?? "";
    // Only a capitalised word is a name, and the end of the text may be half of one.
    if (!/^\p{Lu}/u.test(name) || text.endsWith(whole)) continue;
    if (!known.has(name.toLowerCase())) return true;
  }
  return false;
}

/** Where "I am well, Unit" begins to call the user by the agent's name; the text's length if it does not. */
export function halfCall(text: string, name: string): number {
  const comma = text.lastIndexOf(", ");
  const tail = text.slice(comma + 2);
  return comma >= 0 && tail !== "" && (name.startsWith(tail) || tail === name) ? comma : text.length;
}
