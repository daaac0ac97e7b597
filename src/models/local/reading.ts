/** Tokenises a prompt in turns. A tenant can make this work large, so each turn does only a piece of it. */
import type { ToolDescription } from "../engine.ts";
import type { ChatMessage } from "./protocol.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** Characters of one turn: 10–16 ms, a tenth of what a turn of 128 tokens takes to run. */
export const PIECE_CHARACTERS = 2_000;
/** A prompt that is more than this many times too long is not counted to its end. */
const COUNTED_TIMES = 4;

/** Thrown for a prompt over `limitTokens`. If it is far longer, `promptTokens` is an estimate from what was counted. */
export class PromptTooLong extends Error {
  constructor(
    readonly promptTokens: number,
    readonly limitTokens: number,
  ) {
    super(`the prompt has ${promptTokens} tokens, ${limitTokens} fit`);
  }
}

export interface Reading {
  /** Encodes the next piece. Returns the whole prompt after the last one, undefined before. Throws `PromptTooLong`. */
  takeTurn(): number[] | undefined;
}

export function createReading(
  tokenizer: Pick<Tokenizer, "layOut" | "encode">,
  messages: readonly ChatMessage[],
  limitTokens: number,
  functions?: readonly ToolDescription[],
): Reading {
  const pieces = tokenizer.layOut(messages, PIECE_CHARACTERS, functions);
  const characters = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const prompt: number[] = [];
  let next = 0;
  let done = 0;

  return {
    takeTurn() {
      const end = done + PIECE_CHARACTERS;
      for (let piece = pieces[next]; piece !== undefined && done + piece.length <= end; piece = pieces[next]) {
        for (const token of tokenizer.encode(piece)) prompt.push(token);
        done += piece.length;
        next++;
      }
      if (prompt.length > COUNTED_TIMES * limitTokens) {
        throw new PromptTooLong(Math.ceil((prompt.length * characters) / done), limitTokens);
      }
      if (next < pieces.length) return undefined;
      if (prompt.length > limitTokens) throw new PromptTooLong(prompt.length, limitTokens);
      return prompt;
    },
  };
}
