/**
 * The same decoder on onnxruntime-node, for a system where the C API cannot be reached. The binding copies every output
 * that is fetched, so it fetches only the new rows (`delta.*`, a few KB) and writes them into its own caches.
 */
import { InferenceSession, Tensor } from "onnxruntime-node";
import { allocateCaches, cacheNames, copyCacheRows, type Stepper, type StepperOptions, slotFloats } from "./stepper.ts";

export async function openOrtStepper(options: StepperOptions): Promise<Stepper> {
  const session = await InferenceSession.create(options.modelFile, {
    intraOpNumThreads: options.threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: "all",
    logSeverityLevel: 3,
  });
  const { shape } = options;
  const { kvHeads, headDim, contextTokens } = shape;
  const [names, size] = [cacheNames(shape), slotFloats(shape)];
  const caches = allocateCaches(options.slots, shape);
  const ones = new BigInt64Array(contextTokens).fill(1n);
  const keepOne = new Tensor("int64", new BigInt64Array([1n]), []);
  const fetches = { logits: null, ...Object.fromEntries(names.map((kv) => [`delta.${kv}`, null])) };
  const slots = Array.from({ length: options.slots }, (_, slot) =>
    Object.fromEntries(
      caches.map((cache, i) => [
        `past_key_values.${names[i]}`,
        new Tensor("float32", cache.subarray(slot * size, (slot + 1) * size), [1, kvHeads, contextTokens, headDim]),
      ]),
    ),
  );

  return {
    kind: "ort",
    async step(slot, past, tokens) {
      const count = tokens.length;
      const total = past + count;
      const feeds = slots[slot];
      if (feeds === undefined || total > contextTokens) throw new RangeError("no such slot, or its context is full");
      const out = await session.run(
        {
          ...feeds,
          num_logits_to_keep: keepOne,
          input_ids: new Tensor("int64", BigInt64Array.from(tokens, BigInt), [1, count]),
          attention_mask: new Tensor("int64", ones.subarray(0, total), [1, total]),
        },
        fetches,
      );
      caches.forEach((cache, i) => {
        const rows = floats(out[`delta.${names[i]}`]);
        for (let head = 0; head < kvHeads; head++) {
          const row = rows.subarray(head * count * headDim, (head + 1) * count * headDim);
          cache.set(row, slot * size + (head * contextTokens + past) * headDim);
        }
      });
      return floats(out.logits);
    },
    copyRows: (from, to, rows) => copyCacheRows(caches, shape, [from, to], rows),
    discard() {}, // the binding cannot release pages
  };
}

function floats(tensor: Tensor | undefined): Float32Array {
  if (!(tensor?.data instanceof Float32Array)) throw new Error("expected a float32 output of the model");
  return tensor.data;
}
