/**
 * Constrained decoding: the model writes one of a set of texts, and nothing else. At each place only the tokens that
 * continue one of them count, so what it writes is always valid; where only one text is left, it is not asked.
 */
import { CHUNK_TOKENS } from "../generation.ts";
import type { Slot } from "../prefix-cache.ts";
import type { Stepper } from "../stepper.ts";

export interface Chosen {
  text: string;
  /** How sure the model was among the texts: the product of the shares of the tokens it took, from 0 to 1. */
  sureness: number;
}

export interface ChoiceOptions {
  /** Each with its whole prompt before it, encoded as one text. None may be the beginning of another. */
  texts: readonly { text: string; tokens: readonly number[] }[];
  slot: Slot;
  stepper: Pick<Stepper, "step">;
}

/** Yields after each run of the model, so that others get their turns in between. */
export async function* choose({ texts, slot, stepper }: ChoiceOptions): AsyncGenerator<void, Chosen> {
  let live = texts;
  let sureness = 1;
  for (;;) {
    const [one, ...others] = live;
    if (one === undefined) throw new Error("there is nothing to choose from");
    const at = one.tokens.findIndex((token, place) => others.some(({ tokens }) => tokens[place] !== token));
    if (at < 0) return { text: one.text, sureness };
    slot.tokens.length = Math.min(slot.tokens.length, at - 1);
    let logits = new Float32Array();
    while (slot.tokens.length < at) {
      const done = slot.tokens.length;
      const next = one.tokens.slice(done, Math.min(at, done + CHUNK_TOKENS));
      logits = Float32Array.from(await stepper.step(slot.index, done, next));
      for (const token of next) slot.tokens.push(token);
      yield;
    }
    const candidates = [...new Set(live.flatMap(({ tokens }) => tokens[at] ?? []))];
    const logitOf = (token: number) => logits[token] ?? Number.NEGATIVE_INFINITY;
    const best = candidates.reduce((a, b) => (logitOf(b) > logitOf(a) ? b : a));
    sureness /= candidates.reduce((sum, token) => sum + Math.exp(logitOf(token) - logitOf(best)), 0);
    live = live.filter(({ tokens }) => tokens[at] === best);
  }
}
