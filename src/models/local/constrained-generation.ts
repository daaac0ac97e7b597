/** An answer of a grammar, such as JSON of a schema: each token is the likeliest of those that may follow. */
import { feed, type Generation, type GenerationOptions } from "./generation.ts";
import { type Grammar, type GrammarState, mayEnd, mustEnd } from "./grammar.ts";
import { likeliest } from "./sampling.ts";
import { createTextStream } from "./text-stream.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** So many of the likeliest tokens are tried before all of them are. */
const TRIED_FIRST = 64;

interface Choice {
  token: number;
  /** Those of it that are written. */
  bytes: Uint8Array;
  next: GrammarState;
}

export interface ConstrainedGeneration extends Generation {
  /** Ends the text that is being written within the answer, if one is: with the next token. */
  endText(): void;
}

/** `from` is where an answer goes on that has been begun without the grammar: what of it is of the grammar, and its last token. */
export function createConstrainedGeneration(
  options: GenerationOptions,
  grammar: Grammar,
  from = { state: grammar.start, last: 0 },
): ConstrainedGeneration {
  const { tokenizer, maxTokens } = options;
  const stream = createTextStream([]);
  let { state, last } = from;
  let count = 0;
  let isTextOver = false;

  /** By a token's first byte: many tokens share it. */
  let states: (GrammarState | null)[] = [];

  function afterByte(byte: number): GrammarState | null {
    const known = states[byte];
    if (known !== undefined) return known;
    const next = grammar.after(state, Uint8Array.of(byte));
    states[byte] = next;
    return next;
  }

  /** What follows once all is written is left out: many tokens end a value and go on, as `"}\n` does. */
  function after(token: number): Choice | null {
    const bytes = tokenizer.bytesOf(token);
    let [next, used] = [bytes[0] === undefined ? null : afterByte(bytes[0]), 1];
    while (next !== null && used < bytes.length && !mustEnd(next)) {
      next = grammar.after(next, bytes.subarray(used, used + 1));
      used++;
    }
    return next === null ? null : { token, bytes: bytes.subarray(0, used), next };
  }

  /** The first of these tokens that may follow. */
  function firstThatMay(tokens: Iterable<number>): Choice | "end" | null {
    for (const token of tokens) {
      if (tokenizer.ends.has(token)) {
        if (mayEnd(state)) return "end";
        continue;
      }
      const choice = after(token);
      if (choice !== null) return choice;
    }
    return null;
  }

  /** The likeliest token that may follow; null to end. */
  function choose(logits: Float32Array): Choice | null {
    const quote = isTextOver ? after(quoteOf(tokenizer, logits.length)) : null;
    isTextOver = false;
    if (quote !== null) return quote;
    const chosen =
      firstThatMay(likeliest(logits, TRIED_FIRST).map(({ token }) => token)) ??
      firstThatMay(byLikelihood(logits, possible(logits)));
    return chosen === "end" ? null : chosen;
  }

  /** All tokens whose first byte may follow: to try each token would hold up everybody else's answers. */
  function possible({ length }: Float32Array): number[] {
    const firstBytes = firstBytesOf(tokenizer, length);
    const may = Array.from({ length: 256 }, (_, byte) => afterByte(byte) !== null);
    const tokens: number[] = [];
    for (let token = 0; token < length; token++) {
      if (may[firstBytes[token] ?? NO_BYTE] === true || tokenizer.ends.has(token)) tokens.push(token);
    }
    return tokens;
  }

  return {
    completionTokens: () => count,
    endText() {
      isTextOver = true;
    },
    async takeTurn() {
      const logits = await feed(options, last);
      if (logits === null) return { text: "" };
      const chosen = choose(logits);
      if (chosen === null) return { text: stream.end(), reason: "stop" };
      ({ token: last, next: state } = chosen);
      states = [];
      count++;
      const { text } = stream.push(chosen.bytes);
      if (mustEnd(state)) return { text: text + stream.end(), reason: "stop" };
      return count === maxTokens ? { text: text + stream.end(), reason: "length" } : { text };
    },
  };
}

const valueAt = (logits: Float32Array, token: number): number => logits[token] ?? Number.NEGATIVE_INFINITY;

const byLikelihood = (logits: Float32Array, tokens: number[]): number[] =>
  tokens.sort((a, b) => valueAt(logits, b) - valueAt(logits, a));

const NO_BYTE = -1;
const QUOTE = 0x22;
const firstBytes = new WeakMap<Tokenizer, Int16Array>();

/** The first byte of each token, or `NO_BYTE`; found out once. */
function firstBytesOf(tokenizer: Tokenizer, tokens: number): Int16Array {
  const found =
    firstBytes.get(tokenizer) ??
    Int16Array.from({ length: tokens }, (_, token) => tokenizer.bytesOf(token)[0] ?? NO_BYTE);
  firstBytes.set(tokenizer, found);
  return found;
}

/** The token that is a quotation mark and nothing else. */
function quoteOf(tokenizer: Tokenizer, tokens: number): number {
  const isQuote = (token: number) => tokenizer.bytesOf(token).length === 1 && tokenizer.bytesOf(token)[0] === QUOTE;
  return firstBytesOf(tokenizer, tokens).findIndex((byte, token) => byte === QUOTE && isQuote(token));
}
