/**
 * How long texts are in tokens, without the model's tokenizer: a stated estimate that rather counts too many than too few.
 */
import type { ToolDescription } from "../models/engine.ts";
import type { Turn } from "./protocol.ts";

/** What a message costs besides its text: its role, and the marks around it. */
const MESSAGE_TOKENS = 4;
/** An image counts as this, however large its file is. */
const IMAGE_TOKENS = 1_000;
const MIN_ANSWER_TOKENS = 256;
const MAX_ANSWER_TOKENS = 4_096;

/**
 * A third of a token for each ASCII character, one for each of two bytes of UTF-8 (é, я), and five thirds for each of three
 * (日). English has about a quarter, and Chinese one, so there is a margin. The database counts in the same way
 * (src/storage/migrations/0021-summaries.sql).
 */
export const tokensOf = (text: string): number => Math.ceil((2 * Buffer.byteLength(text) - text.length) / 3);

export function tokensOfTurn({ text, images = [], calls = [], steps = [] }: Turn): number {
  let sum = MESSAGE_TOKENS + tokensOf(text) + images.length * IMAGE_TOKENS + tokensOfCalls(calls);
  for (const step of steps) sum += MESSAGE_TOKENS + tokensOf(step.text) + tokensOfCalls(step.calls);
  return sum;
}

/** Of a turn that has only a text with this many tokens. */
export const tokensOfMessage = (textTokens: number): number => MESSAGE_TOKENS + textTokens;

export const tokensOfCalls = (calls: NonNullable<Turn["calls"]>): number =>
  calls.reduce(
    (sum, { call, result }) => sum + MESSAGE_TOKENS + tokensOf(call.name + call.input) + tokensOf(result),
    0,
  );

const tokensOfOne = new WeakMap<ToolDescription, number>();

/** Of the descriptions of tools, as servers read them. A description is counted once. */
export function tokensOfTools(tools: readonly ToolDescription[]): number {
  return tools.reduce((sum, tool) => {
    const tokens = tokensOfOne.get(tool) ?? tokensOf(JSON.stringify(tool));
    tokensOfOne.set(tool, tokens);
    return sum + tokens;
  }, 0);
}

/** How much of a context stays free for the answer. */
export const reserveOf = (contextTokens: number): number =>
  Math.min(MAX_ANSWER_TOKENS, Math.max(MIN_ANSWER_TOKENS, Math.floor(contextTokens / 8)));
