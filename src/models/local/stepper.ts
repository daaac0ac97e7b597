/**
 * One decoder with several key/value caches ("slots"). A step feeds tokens to one slot and returns the logits of the
 * last position. The stepper does not count rows: the caller says after how many rows the tokens come, so rewinding a
 * slot to a shorter prefix costs nothing.
 *
 * Batched decoding would be a second method here, `stepMany(slots, …)`: the slots of one layer are side by side in one
 * buffer, so neighbouring slots already form the batch that the graph expects.
 */
/** What a decoder's key/value cache looks like. */
export interface CacheShape {
  layers: number;
  kvHeads: number;
  headDim: number;
  vocabulary: number;
  /** Rows of a slot. */
  contextTokens: number;
}

/** SmolLM2 was trained on 8,192; beyond 2,048 a two-core host is too slow to be useful. */
export const CONTEXT_TOKENS = 2_048;

/** The embedded model. */
export const SMOLLM2: CacheShape = {
  layers: 30,
  kvHeads: 3,
  headDim: 64,
  vocabulary: 49_152,
  contextTokens: CONTEXT_TOKENS,
};

/** The cache tensors of the graph, two a layer: `past_key_values.<name>` in, `present.<name>` out. */
export const cacheNames = ({ layers }: CacheShape): string[] =>
  Array.from({ length: layers }, (_, layer) => [`${layer}.key`, `${layer}.value`]).flat();

/** Floats of one slot in one cache tensor, laid out [head, row, dimension]. */
export const slotFloats = ({ kvHeads, contextTokens, headDim }: CacheShape): number =>
  kvHeads * contextTokens * headDim;

/** What a graph with a shared cache takes and gives besides that cache. */
export interface GraphForm {
  /** Whether it wants the positions of its tokens. */
  positionIds: boolean;
  /** Whether it can be told to compute the logits of the last token only. */
  logitsToKeep: boolean;
}

export interface StepperOptions {
  modelFile: string;
  threads: number;
  slots: number;
  shape: CacheShape;
}

/** On the C API, on its Node binding, or on transformers.js. */
export type StepperKind = "ffi" | "ort" | "transformers";

export interface Stepper {
  readonly kind: StepperKind;
  /** Runs `tokens` after the first `past` rows of `slot`. The logits are valid until the next step. */
  step(slot: number, past: number, tokens: readonly number[]): Promise<Float32Array>;
  /** Copies the first `rows` rows of one slot over another's. */
  copyRows(from: number, to: number, rows: number): void;
  /** Releases the memory of a slot's rows to the system, but for the first `kept`, 0 by default. The others are lost. */
  discard(slot: number, kept?: number): void;
}

/** A buffer for each cache tensor. Pages that were never written cost no memory, so slots only use what they fill. */
export const allocateCaches = (slots: number, shape: CacheShape): Float32Array[] =>
  cacheNames(shape).map(() => new Float32Array(slots * slotFloats(shape)));

/** Copies the first `rows` rows of one slot over another's. */
export function copyCacheRows(
  caches: Float32Array[],
  { kvHeads, headDim, contextTokens }: CacheShape,
  [from, to]: readonly [from: number, to: number],
  rows: number,
): void {
  const headFloats = contextTokens * headDim;
  for (const cache of caches) {
    for (let head = 0; head < kvHeads; head++) {
      const source = (from * kvHeads + head) * headFloats;
      cache.copyWithin((to * kvHeads + head) * headFloats, source, source + rows * headDim);
    }
  }
}
