import type { Agent } from "../agents/schema.ts";
import { withTimeout } from "../lib/concurrency.ts";
import { PROMPT_FILES } from "../runtime/prompt.ts";
import type { Memory } from "./memory.ts";
import type { Found } from "./search/entry.ts";
import type { Sources } from "./sources.ts";

/**
 * What a model that calls no tools is told of the agent's memory: passages about the message that it is to answer, at most
 * five. Nothing of what a stranger may have written, or what was said in the background, is told unasked.
 */
export type Recall = (agent: Agent, message: string, conversationId: string) => Promise<string[]>;

/** The first word waits no longer for it. */
const DEADLINE_MS = 500;
const MOST = 5;
const LOOKED_AT = 20;
/** Characters of one. */
const LENGTH = 600;
/** Where the best of what was found has less, it has little to do with the message. */
const GOOD = 0.3;

export const createRecall =
  (memory: Pick<Memory, "search">, sources: Pick<Sources, "isForeground">): Recall =>
  async (agent, message, conversationId) => {
    if (message.trim() === "") return [];
    const found = await withTimeout(
      memory.search(agent, message.slice(0, 1_000), LOOKED_AT).catch(() => null),
      DEADLINE_MS,
    );
    return (found?.items ?? [])
      .filter((one) => one.score >= GOOD && mayBeTold(one, conversationId, sources.isForeground))
      .slice(0, MOST)
      .map(({ text }) => text.slice(0, LENGTH).toWellFormed());
  };

/** Neither what the prompt has anyway, nor what nobody has asked for. */
export function mayBeTold(
  { file, origin, conversationId }: Pick<Found, "file" | "origin" | "conversationId">,
  own: string,
  isForeground: (conversationId: string) => boolean,
): boolean {
  if (origin !== "owner" && origin !== "agent") return false;
  if (file === null && conversationId === own) return false;
  if (file !== null && PROMPT_FILES.includes(file)) return false;
  return conversationId === null || isForeground(conversationId);
}
