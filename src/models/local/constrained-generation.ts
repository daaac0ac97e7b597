/** An answer that is JSON of a schema: each token is the likeliest of those that may follow. */
import { feed, type Generation, type GenerationOptions } from "./generation.ts";
import { createJsonGrammar, type GrammarState, mayEnd, mustEnd } from "./json-grammar.ts";
import { likeliest } from "./sampling.ts";
import { createTextStream } from "./text-stream.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** So many of the likeliest tokens are tried before all of them are. */
const TRIED_FIRST = 64;

export function createConstrainedGeneration(options: GenerationOptions, schema: Record<string, unknown>): Generation {
  const { tokenizer, maxTokens } = options;
  const grammar = createJsonGrammar(schema);
  const stream = createTextStream([]);
  let state = grammar.start;
  let count = 0;
  let last = 0;

  /** By a token's first byte: many tokens share it. */
  let states: (GrammarState | null)[] = [];

  function afterByte(byte: number): GrammarState | null {
    const known = states[byte];
    if (known !== undefined) return known;
    const next = grammar.after(state, Uint8Array.of(byte));
    states[byte] = next;
    return next;
  }

  function after(bytes: Uint8Array): GrammarState | null {
    const [first] = bytes;
    const begun = first === undefined ? null : afterByte(first);
    return begun === null ? null : grammar.after(begun, bytes.subarray(1));
  }

  /** The first of these tokens that may follow, and the state after it. */
  function firstThatMay(tokens: Iterable<number>): { token: number; next: GrammarState } | "end" | null {
    for (const token of tokens) {
      if (tokenizer.ends.has(token)) {
        if (mayEnd(state)) return "end";
        continue;
      }
      const next = after(tokenizer.bytesOf(token));
      if (next !== null) return { token, next };
    }
    return null;
  }

  /** The likeliest token that may follow, and the state after it; null to end. */
  function choose(logits: Float32Array): { token: number; next: GrammarState } | null {
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
    async takeTurn() {
      const logits = await feed(options, last);
      if (logits === null) return { text: "" };
      const chosen = choose(logits);
      if (chosen === null) return { text: stream.end(), reason: "stop" };
      ({ token: last, next: state } = chosen);
      states = [];
      count++;
      const { text } = stream.push(tokenizer.bytesOf(last));
      if (mustEnd(state)) return { text: text + stream.end(), reason: "stop" };
      return count === maxTokens ? { text: text + stream.end(), reason: "length" } : { text };
    },
  };
}

const valueAt = (logits: Float32Array, token: number): number => logits[token] ?? Number.NEGATIVE_INFINITY;

const byLikelihood = (logits: Float32Array, tokens: number[]): number[] =>
  tokens.sort((a, b) => valueAt(logits, b) - valueAt(logits, a));

const NO_BYTE = -1;
const firstBytes = new WeakMap<Tokenizer, Int16Array>();

/** The first byte of each token, or `NO_BYTE`; found out once. */
function firstBytesOf(tokenizer: Tokenizer, tokens: number): Int16Array {
  const found =
    firstBytes.get(tokenizer) ??
    Int16Array.from({ length: tokens }, (_, token) => tokenizer.bytesOf(token)[0] ?? NO_BYTE);
  firstBytes.set(tokenizer, found);
  return found;
}
