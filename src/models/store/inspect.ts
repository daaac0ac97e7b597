/** What the files of a model in Hugging Face layout say about it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { DTYPE_NAMES, type Dtype, weightsPath } from "./dtypes.ts";

/** A model that cannot be used. The message says what is missing or not supported, and the next step. */
export class UnusableModel extends Error {}

/** Weights of more than 2 GB are in files beside: `model_q4.onnx_data`, `model_q4.onnx_data_1`. */
const isDataOf = (weights: string) => (path: string) =>
  path.startsWith(`${weights}_data`) && /^(?:_\d{1,2})?$/.test(path.slice(`${weights}_data`.length));

const NEEDED = ["config.json", "tokenizer.json", "tokenizer_config.json"] as const;
/** Taken if they are there. */
const WELCOME = ["generation_config.json", "special_tokens_map.json", "chat_template.jinja", "README.md", "LICENSE"];

export interface Picked {
  dtype: Dtype;
  paths: string[];
}

/** Chooses the files to take. Throws `UnusableModel`. */
export function pickFiles(paths: readonly string[], wanted: Dtype | null): Picked {
  const has = new Set(paths);
  const there = DTYPE_NAMES.filter((dtype) => has.has(weightsPath(dtype)));
  const dtype = wanted ?? there[0];
  const missing: string[] = NEEDED.filter((path) => !has.has(path));
  if (dtype === undefined) missing.push("onnx/model_q4.onnx (or another onnx/model….onnx)");
  if (missing.length > 0 || dtype === undefined) {
    throw new UnusableModel(
      `it has no ${missing.join(", no ")}; expected a text-generation model in ONNX form, in Hugging Face layout, such as ` +
        "those of onnx-community on the hub",
    );
  }
  if (!there.includes(dtype)) {
    throw new UnusableModel(
      `it has no ${weightsPath(dtype)}; --dtype may be ${there.join(", ") || "none of its files"}`,
    );
  }
  const weights = weightsPath(dtype);
  const data = paths.filter(isDataOf(weights));
  return { dtype, paths: [...NEEDED, ...WELCOME.filter((path) => has.has(path)), weights, ...data.sort()] };
}

const positive = z.int().positive().optional().catch(undefined);
const Config = z.object({
  architectures: z.array(z.string()).min(1),
  is_encoder_decoder: z.boolean().optional(),
  vocab_size: positive,
  max_position_embeddings: positive,
  n_positions: positive,
  num_hidden_layers: positive,
  n_layer: positive,
  num_attention_heads: positive,
  n_head: positive,
  num_key_value_heads: positive,
  hidden_size: positive,
  n_embd: positive,
  head_dim: positive,
});

export interface Facts {
  architecture: string;
  /** As trained. */
  contextTokens: number;
  /** Undefined if the configuration does not say it in the usual words. */
  shape: { layers: number; kvHeads: number; headDim: number; vocabulary: number } | undefined;
  license: string | null;
  chatTemplate: boolean;
}

const USUAL_CONTEXT = 2_048;

/** Reads the model's files in `folder`. Throws `UnusableModel`. */
export function readFacts(folder: string): Facts {
  const config = Config.safeParse(readJson(folder, "config.json"));
  if (!config.success) throw new UnusableModel("its config.json does not name its architecture");
  const { data } = config;
  const [architecture = ""] = data.architectures;
  if (!/ForCausalLM$|LMHeadModel$/.test(architecture) || data.is_encoder_decoder === true) {
    throw new UnusableModel(`it is a ${architecture}, which does not generate text from text; expected a …ForCausalLM`);
  }
  const layers = data.num_hidden_layers ?? data.n_layer;
  const heads = data.num_attention_heads ?? data.n_head;
  const width = data.hidden_size ?? data.n_embd;
  const kvHeads = data.num_key_value_heads ?? heads;
  const headDim = data.head_dim ?? (width !== undefined && heads !== undefined ? Math.floor(width / heads) : undefined);
  const { vocab_size: vocabulary } = data;
  const tokenizer = z.object({ chat_template: z.unknown() }).safeParse(readJson(folder, "tokenizer_config.json")).data;
  return {
    architecture,
    contextTokens: data.max_position_embeddings ?? data.n_positions ?? USUAL_CONTEXT,
    shape: layers && kvHeads && headDim && vocabulary ? { layers, kvHeads, headDim, vocabulary } : undefined,
    license: licenseOf(folder),
    chatTemplate: tokenizer?.chat_template !== undefined || readText(folder, "chat_template.jinja") !== null,
  };
}

/** From the model card's front matter. */
function licenseOf(folder: string): string | null {
  const [, front = ""] = /^---\r?\n([\s\S]*?)\r?\n---/.exec(readText(folder, "README.md") ?? "") ?? [];
  const [, license] = /^license:\s*["']?([A-Za-z0-9][A-Za-z0-9 ._-]{0,63}?)["']?\s*$/m.exec(front) ?? [];
  return license ?? null;
}

function readText(folder: string, name: string): string | null {
  try {
    return readFileSync(join(folder, name), "utf8");
  } catch {
    return null;
  }
}

function readJson(folder: string, name: string): unknown {
  try {
    return JSON.parse(readText(folder, name) ?? "");
  } catch {
    throw new UnusableModel(`its ${name} is not valid JSON`);
  }
}
