import type { Agent } from "../agents/schema.ts";
import { withTimeout } from "../lib/concurrency.ts";
import {
  asksForThing,
  asksSomething,
  asSaid,
  coversWords,
  hasEvidence,
  mayAnswer,
  recallQuestion,
  sharesVerb,
  sharesWords,
  tellsPlainly,
  tellsSomething,
  withoutRequest,
} from "../lib/recall.ts";
import { sentencesOf } from "../lib/words.ts";
import type { ModelAbilities } from "../models/engine.ts";
import { PROMPT_FILES } from "../runtime/prompt.ts";
import { fileAnswer, mayStandInFile } from "./file-answer.ts";
import { isNotesFile } from "./lines.ts";
import type { Memory } from "./memory.ts";
import type { Found } from "./search/entry.ts";
import type { Sources } from "./sources.ts";

/**
 * What a model that cannot search the agent's memory is told of it: passages about the message that it is to answer, at most
 * five. Nothing of what a stranger may have written, or what was said in the background, is told unasked. A model that
 * follows only a short prompt is told one thing that the person has said or noted, and only if the message asks for such.
 */
export type Recall = (
  agent: Agent,
  message: string,
  conversationId: string,
  prompt: ModelAbilities["prompt"],
) => Promise<string[]>;

export interface RecallSources extends Pick<Sources, "isForeground"> {
  /** Whether there are text files besides those of the prompt and the notes. */
  hasOwnTexts(agent: Agent): boolean;
}

/** The first word waits no longer for it. */
const DEADLINE_MS = 500;
/** Nor is it searched for by its meaning if that takes longer, as when the embedding model is not loaded. */
const SEARCH_MS = 300;
const MOST = 5;
const LOOKED_AT = 20;
/** Characters of one. */
const LENGTH = 600;
/** Where the best of what was found has less, it has little to do with the message. */
const GOOD = 0.3;

/**
 * For a short prompt, by how well it answers: a text that has little to do with the message would be talked about all the
 * same. One that tells what was asked is the answer, even where only its words could be searched for and others have more
 * of them.
 */
const GOOD_ALONE = { tells: 0, may: GOOD, near: 0.5 };
/** Characters of a text that such a model can take up. */
const SHORT = 200;
/** Questions about what the person has told, in the language in which such a model answers. */
const ASKS = /\?|\b(?:what|who|where|when|which|how|tell|remind|remember)\b/i;
const OF_PERSON =
  /\b(?:where (?:is|are|was|were)|my|mine|our|ours|we|us|remember|remind|told|said|mentioned|(?:am|do|did|was|have|should) I)\b/i;
export const createRecall =
  (memory: Pick<Memory, "search" | "keep">, sources: RecallSources): Recall =>
  async (agent, message, conversationId, prompt) => {
    const isShort = prompt === "short";
    const question = isShort ? recallQuestion(message) : null;
    const isOfThing = question !== null && asksForThing(question);
    const mayAsk = question !== null || (ASKS.test(message) && OF_PERSON.test(message));
    if (message.trim() === "") return [];
    const mayRead =
      isShort && (question === null || isOfThing) && mayStandInFile(message) && sources.hasOwnTexts(agent);
    if (isShort && !mayAsk && !mayRead) {
      // It may be asked for with the next message, or at the beginning of the next conversation.
      if (tellsSomething(message) || sources.hasOwnTexts(agent)) await memory.keep(agent).catch(() => null);
      return [];
    }
    const found = await withTimeout(
      memory.search(agent, message.slice(0, 1_000), LOOKED_AT, SEARCH_MS).catch(() => null),
      DEADLINE_MS,
    );
    const items = (found?.items ?? []).filter((one) =>
      mayBeTold(one, isShort ? null : conversationId, sources.isForeground),
    );
    const told = (mayAsk || !isShort ? items : [])
      .flatMap((one) => (question === null ? one : partsOf(one.text, question).map((text) => ({ ...one, text }))))
      .map((one) => ({ ...one, fit: question === null ? ("near" as const) : fitOf(one.text, question) }))
      .filter(({ score, fit }) => score >= (isShort ? GOOD_ALONE[fit] : GOOD))
      .filter(({ text, fit }) => question === null || (isOfThing ? fit !== "near" : mayAnswer(text, question)))
      .filter((one) => !isShort || (isTold(one) && one.text !== message.trim()))
      // Of several answers to one question, the one that was told last counts.
      .sort((a, b) => GOOD_ALONE[a.fit] - GOOD_ALONE[b.fit] || (a.fit === "tells" ? b.createdAt - a.createdAt : 0))
      .slice(0, isShort ? 1 : MOST)
      .map(({ text }) => text.slice(0, LENGTH).toWellFormed());
    const read = mayRead && told.length === 0 ? fileAnswer(message, items) : null;
    return read === null ? told : [read];
  };

/** "I live in Leeds" has less in common with "where do I live?" than other questions have. */
function fitOf(text: string, question: string): keyof typeof GOOD_ALONE {
  if (tellsPlainly(text, question)) return "tells";
  const may = asksForThing(question)
    ? coversWords(text, question)
    : (hasEvidence(text, question) ?? sharesVerb(text, question));
  return may ? "may" : "near";
}

/** Of several sentences, those that have to do with the question; all of a text, if only all of it has. */
function partsOf(text: string, question: string): string[] {
  if (text.length > SHORT) return [text];
  const parts = sentencesOf(text).filter((one) => fitOf(one, question) !== "near" || sharesWords(one, question));
  return parts.length > 0 ? parts : [text];
}

/** What a person has said, or a line of the notes. */
function isTold({ file, origin, text }: Pick<Found, "file" | "origin" | "text">): boolean {
  const isTold = file === null ? origin === "owner" : isNotesFile(file);
  return isTold && text.length <= SHORT && !asksSomething(withoutRequest(asSaid(text)));
}

/**
 * Neither what the prompt has anyway, nor what nobody has asked for. `own` is the conversation that the prompt shows, or null
 * if it shows little of any.
 */
export function mayBeTold(
  { file, origin, conversationId }: Pick<Found, "file" | "origin" | "conversationId">,
  own: string | null,
  isForeground: (conversationId: string) => boolean,
): boolean {
  if (origin !== "owner" && origin !== "agent") return false;
  if (file === null && own !== null && conversationId === own) return false;
  if (file !== null && PROMPT_FILES.includes(file)) return false;
  return conversationId === null || isForeground(conversationId);
}
