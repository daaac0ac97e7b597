/**
 * A decoder on transformers.js, for any architecture that it knows. The binding copies the whole cache in and out at each
 * step, so it is several times slower than one with a shared cache.
 */
import { basename, dirname } from "node:path";
import { weightsPath } from "../store/dtypes.ts";
import type { AddedModel } from "./protocol.ts";
import type { GraphForm, Stepper, StepperOptions } from "./stepper.ts";
import { loadTransformers } from "./transformers.ts";

type Transformers = Awaited<ReturnType<typeof loadTransformers>>;
type Tensor = InstanceType<Transformers["Tensor"]>;
type Cache = Record<string, Tensor>;
type Floats = Float32Array | Float16Array | Uint16Array;

export interface OpenedGraph extends Stepper {
  /** Set if the graph takes and gives what a decoder with a shared cache does; whether it shares it is to be tried. */
  readonly form: GraphForm | null;
}

const PAST = "past_key_values.";
/** Inputs of a graph besides its cache. */
const KNOWN_INPUTS = ["input_ids", "attention_mask", "position_ids", "num_logits_to_keep"];

export async function openTransformersStepper(
  { folder, dtype }: Pick<AddedModel, "folder" | "dtype">,
  { threads, slots }: Pick<StepperOptions, "threads" | "slots">,
): Promise<OpenedGraph> {
  const { AutoModelForCausalLM, DynamicCache, Tensor, env } = await loadTransformers();
  env.localModelPath = `${dirname(folder)}/`;
  const data = new Bun.Glob(`${weightsPath(dtype)}_data{,_[0-9],_[0-9][0-9]}`).scanSync(folder);
  const model = await AutoModelForCausalLM.from_pretrained(basename(folder), {
    dtype: dtype as "q4",
    device: "cpu",
    use_external_data_format: [...data].length,
    session_options: { intraOpNumThreads: threads, interOpNumThreads: 1, logSeverityLevel: 3 },
  });
  const session = model.sessions.model as Session;
  const caches: Cache[] = Array.from({ length: slots }, () => ({}));

  /** The first rows of a cache. Its tensors are never changed, so caches may share them. */
  function cut(cache: Cache, rows: number): Cache {
    if (rows === 0) return {};
    return Object.fromEntries(
      Object.entries(cache).map(([name, tensor]) => {
        const [batch = 0, heads = 0, has = 0, width = 0] = tensor.dims;
        if (!name.startsWith(PAST) || tensor.dims.length !== 4 || batch !== 1 || has < rows) {
          throw new Error(`its cache (${name}, ${tensor.dims.join(" × ")}) cannot be cut to ${rows} rows`);
        }
        if (has === rows) return [name, tensor];
        const data = tensor.data as Floats;
        const kept = new (data.constructor as Float32ArrayConstructor)(heads * rows * width);
        for (let head = 0; head < heads; head++) {
          const from = head * has * width;
          kept.set(data.subarray(from, from + rows * width) as Float32Array, head * rows * width);
        }
        return [name, new Tensor(tensor.type, kept, [1, heads, rows, width])];
      }),
    );
  }

  return {
    kind: "transformers",
    form: formOf(session),
    async step(slot, past, tokens) {
      const cache = cut(caches[slot] ?? {}, past);
      const int64 = (values: BigInt64Array, dims: number[]) => new Tensor("int64", values, dims);
      const total = past + tokens.length;
      const output = (await model.forward({
        input_ids: int64(BigInt64Array.from(tokens, BigInt), [1, tokens.length]),
        attention_mask: int64(new BigInt64Array(total).fill(1n), [1, total]),
        num_logits_to_keep: int64(new BigInt64Array([1n]), []),
        past_key_values: past === 0 ? null : new DynamicCache(cache),
      })) as Record<string, Tensor>;
      caches[slot] = cacheIn(output);
      const logits = output.logits;
      if (logits === undefined) throw new Error("the model returns no logits");
      const last = (logits.data as Floats).subarray(-(logits.dims.at(-1) ?? 0));
      return last instanceof Float32Array ? last : Float32Array.from(last);
    },
    copyRows(from, to, rows) {
      caches[to] = cut(caches[from] ?? {}, rows);
    },
    discard(slot, kept = 0) {
      if (kept === 0) caches[slot] = {}; // its own rows are all that a cache has: each step cuts them anew
    },
  };
}

/** As transformers.js names it going in. */
const cacheIn = (output: Record<string, Tensor>): Cache =>
  Object.fromEntries(
    Object.entries(output).flatMap(([name, tensor]) =>
      name.startsWith("present")
        ? [[name.replace(/^present(?=\.)/, "past_key_values").replace(/^present_/, "past_"), tensor]]
        : [],
    ),
  );

interface Session {
  inputNames: readonly string[];
  inputMetadata: readonly { name: string; type?: string; shape?: readonly unknown[] }[];
}

function formOf({ inputNames, inputMetadata }: Session): GraphForm | null {
  const others = inputNames.filter((name) => !name.startsWith(PAST));
  const cache = inputMetadata.filter(({ name }) => name.startsWith(PAST));
  const usual = cache.every(({ type, shape }) => type === "float32" && shape?.length === 4);
  if (!usual || others.some((name) => !KNOWN_INPUTS.includes(name))) return null;
  return { positionIds: others.includes("position_ids"), logitsToKeep: others.includes("num_logits_to_keep") };
}
