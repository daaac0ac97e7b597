/** One answer being written: each turn runs one chunk of the prompt or one token of the answer. */
import type { FinishReason } from "../engine.ts";
import type { Slot } from "./prefix-cache.ts";
import type { ToolRequest } from "./protocol.ts";
import { chooseToken, type Sampling } from "./sampling.ts";
import type { Stepper } from "./stepper.ts";
import { createTextStream } from "./text-stream.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** Prompt tokens of one turn. Another conversation's next token, or a cancel, waits for no more than this. */
export const CHUNK_TOKENS = 128;

export interface Turn {
  text: string;
  /** Set on the last turn. */
  reason?: FinishReason;
  /** Set if the reason is that a tool is called. */
  call?: ToolRequest;
  /** Set if the length allowed has ended in the middle of a call. */
  isCallCut?: true;
}

export interface Generation {
  takeTurn(): Promise<Turn>;
  completionTokens(): number;
}

export interface GenerationOptions {
  prompt: readonly number[];
  slot: Slot;
  stepper: Stepper;
  tokenizer: Tokenizer;
  maxTokens: number;
  stop: readonly string[];
  sampling: Sampling;
  random: () => number;
}

/**
 * One step of the model: with the next chunk of the prompt, or once it has all of it, with the last token of the answer.
 * Returns the logits of the token to come; null while the prompt goes on.
 */
export async function feed(
  { prompt, slot, stepper }: Pick<GenerationOptions, "prompt" | "slot" | "stepper">,
  last: number,
): Promise<Float32Array | null> {
  const done = slot.tokens.length;
  const tokens = done < prompt.length ? prompt.slice(done, done + CHUNK_TOKENS) : [last];
  const logits = await stepper.step(slot.index, done, tokens);
  for (const token of tokens) slot.tokens.push(token);
  return slot.tokens.length < prompt.length ? null : logits;
}

export function createGeneration(options: GenerationOptions): Generation {
  const { tokenizer } = options;
  const stream = createTextStream(options.stop);
  const written = new Set<number>();
  let count = 0;
  let last = 0;

  return {
    completionTokens: () => count,
    async takeTurn() {
      const logits = await feed(options, last);
      if (logits === null) return { text: "" };
      const token = chooseToken(logits, written, options.sampling, options.random);
      if (tokenizer.ends.has(token)) return { text: stream.end(), reason: "stop" };
      written.add(token);
      last = token;
      count++;
      const { text, stopped } = stream.push(tokenizer.bytesOf(token));
      if (stopped) return { text, reason: "stop" };
      return count === options.maxTokens ? { text: text + stream.end(), reason: "length" } : { text };
    },
  };
}
