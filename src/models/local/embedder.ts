/** Sentences to vectors (all-MiniLM-L6-v2): 384 dimensions, of length 1, so a dot product is the cosine. */
import type { ModelFiles } from "./files.ts";
import { loadTransformers } from "./transformers.ts";

export const EMBED_MODEL = "all-minilm-l6-v2";
export type Embed = (texts: readonly string[], onTokens?: (count: number) => void) => Promise<Float32Array[]>;

/** The length that the model was trained on; of a longer text, only the beginning counts. */
const MAX_TOKENS = 256;

export async function openEmbedder(files: ModelFiles, threads: number): Promise<Embed> {
  await files.verify("native/");
  await files.verify(`models/${EMBED_MODEL}/`);
  const { AutoModel, AutoTokenizer, env, mean_pooling } = await loadTransformers();
  env.localModelPath = `${files.modelsFolder}/`;
  const tokenizer = await AutoTokenizer.from_pretrained(EMBED_MODEL);
  const model = await AutoModel.from_pretrained(EMBED_MODEL, {
    dtype: "q8",
    device: "cpu",
    session_options: { intraOpNumThreads: threads, interOpNumThreads: 1 },
  });

  return async (texts, onTokens) => {
    const vectors: Float32Array[] = [];
    // One by one: a batch is no faster on a CPU and needs memory for all of its padding.
    for (const text of texts) {
      const inputs = tokenizer(text, { truncation: true, max_length: MAX_TOKENS });
      onTokens?.(inputs.input_ids.dims.at(-1) ?? 0);
      const { last_hidden_state: states } = await model(inputs);
      const [vector] = mean_pooling(states, inputs.attention_mask).normalize().tolist() as number[][];
      vectors.push(Float32Array.from(vector ?? []));
    }
    return vectors;
  };
}
