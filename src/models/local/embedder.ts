/** Sentences to vectors (all-MiniLM-L6-v2): 384 dimensions, of length 1, so a dot product is the cosine. */
import { join } from "node:path";
import { Tokenizer } from "@huggingface/tokenizers";
import type { ModelFiles } from "./files.ts";
import { releaseFreed } from "./memory.ts";

export const EMBED_MODEL = "all-minilm-l6-v2";
export type Embed = (texts: readonly string[], onTokens?: (count: number) => void) => Promise<Float32Array[]>;

const DIMENSIONS = 384;
/** The length that the model was trained on; of a longer text, only the beginning counts. */
const MAX_TOKENS = 256;

export async function openEmbedder(files: ModelFiles, threads: number): Promise<Embed> {
  await files.verify("native/");
  await files.verify(`models/${EMBED_MODEL}/`);
  // Imported only when needed: the binding opens its native library as it loads.
  const { InferenceSession, Tensor } = await import("onnxruntime-node");
  const folder = join(files.modelsFolder, EMBED_MODEL);
  const read = (name: string): Promise<object> => Bun.file(join(folder, name)).json();
  const tokenizer = new Tokenizer(await read("tokenizer.json"), await read("tokenizer_config.json"));
  const session = await InferenceSession.create(join(folder, "onnx/model_quantized.onnx"), {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
  });
  releaseFreed(); // the file, as it was read

  /** The mean of its tokens' states, of length 1. */
  async function vectorOf(tokens: number[]): Promise<Float32Array> {
    const dims = [1, tokens.length];
    const same = (value: bigint) => new Tensor("int64", new BigInt64Array(tokens.length).fill(value), dims);
    const { last_hidden_state: states } = await session.run({
      input_ids: new Tensor("int64", BigInt64Array.from(tokens, BigInt), dims),
      attention_mask: same(1n),
      token_type_ids: same(0n),
    });
    const data = states?.data as Float32Array;
    const sums = new Float32Array(DIMENSIONS);
    for (let at = 0; at < data.length; at++) sums[at % DIMENSIONS] = (sums[at % DIMENSIONS] ?? 0) + (data[at] ?? 0);
    const length = Math.hypot(...sums);
    return sums.map((sum) => sum / length);
  }

  return async (texts, onTokens) => {
    const vectors: Float32Array[] = [];
    // One by one: a batch is no faster on a CPU and needs memory for all of its padding.
    for (const text of texts) {
      const tokens = tokenizer.encode(text).ids.slice(0, MAX_TOKENS);
      onTokens?.(tokens.length);
      vectors.push(await vectorOf(tokens));
    }
    return vectors;
  };
}
