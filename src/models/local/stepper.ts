/**
 * One decoder with several key/value caches ("slots"). A step feeds tokens to one slot and returns the logits of the
 * last position. The stepper does not count rows: the caller says after how many rows the tokens come, so rewinding a
 * slot to a shorter prefix costs nothing.
 *
 * Batched decoding would be a second method here, `stepMany(slots, …)`: the slots of one layer are side by side in one
 * buffer, so neighbouring slots already form the batch that the graph expects.
 */
export const KV_HEADS = 3;
export const HEAD_DIM = 64;
export const VOCABULARY = 49_152;
/** SmolLM2 was trained on 8,192; beyond 2,048 a two-core host is too slow to be useful. */
export const CONTEXT_TOKENS = 2_048;

const LAYERS = 30;
/** The 60 cache tensors of the graph: `past_key_values.<name>` in, `present.<name>` out. */
export const KV_NAMES = Array.from({ length: LAYERS }, (_, layer) => [`${layer}.key`, `${layer}.value`]).flat();
/** Floats of one slot in one cache tensor, laid out [head, row, dimension]. */
export const SLOT_FLOATS = KV_HEADS * CONTEXT_TOKENS * HEAD_DIM;

export interface StepperOptions {
  modelFile: string;
  threads: number;
  slots: number;
}

export interface Stepper {
  readonly kind: "ffi" | "ort";
  /** Runs `tokens` after the first `past` rows of `slot`. The logits are valid until the next step. */
  step(slot: number, past: number, tokens: readonly number[]): Promise<Float32Array>;
  /** Copies the first `rows` rows of one slot over another's. */
  copyRows(from: number, to: number, rows: number): void;
  /** Releases a slot's memory to the system; its rows are lost. */
  discard(slot: number): void;
}

/** A buffer for each cache tensor. Pages that were never written cost no memory, so slots only use what they fill. */
export const allocateCaches = (slots: number): Float32Array[] =>
  KV_NAMES.map(() => new Float32Array(slots * SLOT_FLOATS));

export function copyCacheRows(caches: Float32Array[], from: number, to: number, rows: number): void {
  for (const cache of caches) {
    for (let head = 0; head < KV_HEADS; head++) {
      const offset = head * CONTEXT_TOKENS * HEAD_DIM;
      const source = from * SLOT_FLOATS + offset;
      cache.copyWithin(to * SLOT_FLOATS + offset, source, source + rows * HEAD_DIM);
    }
  }
}
