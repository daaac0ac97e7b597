/** An answer that is JSON of a schema: each token is the likeliest of those that may follow. */
import { feed, type Generation, type GenerationOptions } from "./generation.ts";
import { createJsonGrammar, type GrammarState, mayEnd, mustEnd } from "./json-grammar.ts";
import { createTextStream } from "./text-stream.ts";

/** So many of the likeliest tokens are tried before all of them are. */
const TRIED_FIRST = 64;

export function createConstrainedGeneration(options: GenerationOptions, schema: Record<string, unknown>): Generation {
  const { tokenizer, maxTokens } = options;
  const grammar = createJsonGrammar(schema);
  const stream = createTextStream([]);
  let state = grammar.start;
  let count = 0;
  let last = 0;

  /** The likeliest token that may follow, and the state after it; null to end. */
  function choose(logits: Float32Array): { token: number; next: GrammarState } | null {
    for (const order of [() => likeliest(logits, TRIED_FIRST), () => byLikelihood(logits)]) {
      for (const token of order()) {
        if (tokenizer.ends.has(token)) {
          if (mayEnd(state)) return null;
          continue;
        }
        const bytes = tokenizer.bytesOf(token);
        const next = bytes.length === 0 ? null : grammar.after(state, bytes);
        if (next !== null) return { token, next };
      }
    }
    return null;
  }

  return {
    completionTokens: () => count,
    async takeTurn() {
      const logits = await feed(options, last);
      if (logits === null) return { text: "" };
      const chosen = choose(logits);
      if (chosen === null) return { text: stream.end(), reason: "stop" };
      ({ token: last, next: state } = chosen);
      count++;
      const { text } = stream.push(tokenizer.bytesOf(last));
      if (mustEnd(state)) return { text: text + stream.end(), reason: "stop" };
      return count === maxTokens ? { text: text + stream.end(), reason: "length" } : { text };
    },
  };
}

const valueAt = (logits: Float32Array, token: number): number => logits[token] ?? Number.NEGATIVE_INFINITY;

const byLikelihood = (logits: Float32Array): number[] =>
  Array.from(logits.keys()).sort((a, b) => valueAt(logits, b) - valueAt(logits, a));

/** The tokens with the largest logits, largest first. */
function likeliest(logits: Float32Array, most: number): number[] {
  const best: number[] = [];
  let least = Number.NEGATIVE_INFINITY;
  for (let token = 0; token < logits.length; token++) {
    const value = logits[token] as number;
    if (best.length === most && value <= least) continue;
    let at = best.length;
    while (at > 0 && valueAt(logits, best[at - 1] as number) < value) at--;
    best.splice(at, 0, token);
    if (best.length > most) best.pop();
    least = valueAt(logits, best.at(-1) as number);
  }
  return best;
}
