/**
 * How an agent says who it is: the one fact that its instructions always contain, and that a small model gets wrong.
 */
import type { ChatMessage } from "./protocol.ts";

/** A line of the instructions, as src/runtime/short-prompt.ts writes it. */
const TOLD = /^(?:Your name is|Du heißt|Te llamas) (.+)\.$/mu;
const INTRODUCES = /(?<![\p{L}])(?:my name is|ich heiße|mein name ist|me llamo|mi nombre es)$/iu;
const ASKED =
  /\b(?:(?:what(?: is|['’]s)|tell me|say|know|have) your name|who are you|what are you called|wie heißt du|wer bist du|(?:was|wie) ist dein name|cómo te llamas|cuál es tu nombre|quién eres)(?![\p{L}])/iu;

/** The agent's name in its instructions, or null. */
export function nameTold(messages: readonly ChatMessage[]): string | null {
  return TOLD.exec(messages.find(({ role }) => role === "system")?.content ?? "")?.[1] ?? null;
}

/** Whether a name must come next. */
export const introduces = (text: string): boolean => INTRODUCES.test(text);

export const asksForName = (question: string): boolean => ASKED.test(question);
