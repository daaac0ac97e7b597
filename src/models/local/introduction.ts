/**
 * How an agent introduces itself. Its name is the one fact that its instructions always contain, and a small model gets
 * it wrong.
 */
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
