/** A chat model that the operator has added: its own chat template, calls and settings, and no guards. */
import { join } from "node:path";
import { z } from "zod";
import { weightsPath } from "../store/dtypes.ts";
import { type ChatModel, createChatModel } from "./chat-model.ts";
import { type ModelFiles, sha256Of } from "./files.ts";
import type { AddedModel, FastForm, ModelToHost, ProcessSettings, Trial } from "./protocol.ts";
import { chooseToken, SAMPLING, type Sampling } from "./sampling.ts";
import type { CacheShape, Stepper } from "./stepper.ts";
import { openFfiStepper } from "./stepper-ffi.ts";
import { openTransformersStepper } from "./stepper-transformers.ts";
import { openTokenizer, type Tokenizer } from "./tokenizer.ts";

/** Throws, saying why, if the model's files are not those of its manifest or cannot be loaded. */
export async function openAddedChat(
  files: ModelFiles,
  settings: ProcessSettings,
  model: AddedModel,
  send: (message: ModelToHost) => void,
): Promise<ChatModel> {
  await files.verify("native/");
  for (const { path, sha256 } of model.files ?? []) {
    const found = await sha256Of(join(model.folder, path));
    if (found === sha256) continue;
    throw new Error(
      `${join(model.folder, path)} ${found === undefined ? "is missing" : "was changed since it was added"}`,
    );
  }
  const tokenizer = await openTokenizer(model.folder);
  const stepper =
    model.fast === null
      ? await openTransformersStepper(model, settings)
      : await openFast(files, settings, model, model.fast);
  Bun.gc(true); // frees what reading the tokenizer left behind
  send({ type: "loaded", stepper: stepper.kind });
  return createChatModel({
    tokenizer,
    stepper,
    slots: settings.slots,
    cacheTokens: settings.cacheTokens,
    contextTokens: model.contextTokens,
    sampling: await samplingOf(model.folder),
    send,
  });
}

function openFast(
  files: ModelFiles,
  settings: ProcessSettings,
  model: AddedModel,
  { shape, ...form }: FastForm,
): Promise<Stepper> {
  return openFfiStepper(
    files.library,
    {
      modelFile: join(model.folder, weightsPath(model.dtype)),
      threads: settings.threads,
      slots: settings.slots,
      shape: { ...shape, contextTokens: model.contextTokens },
    },
    form,
  );
}

const between = (low: number, high: number) => z.number().min(low).max(high).optional().catch(undefined);
const GenerationConfig = z.object({
  do_sample: z.boolean().optional().catch(undefined),
  temperature: between(0, 2),
  top_k: between(1, 1_000),
  top_p: between(0.01, 1),
  repetition_penalty: between(1, 2),
});

/** As the model's authors recommend. */
async function samplingOf(folder: string): Promise<Sampling> {
  const file = Bun.file(join(folder, "generation_config.json"));
  const { data } = GenerationConfig.safeParse((await file.exists()) ? await file.json() : {});
  return {
    temperature: data?.do_sample === false ? 0 : (data?.temperature ?? SAMPLING.temperature),
    topK: Math.round(data?.top_k ?? SAMPLING.topK),
    topP: data?.top_p ?? SAMPLING.topP,
    repetition: data?.repetition_penalty ?? SAMPLING.repetition,
  };
}

/** Tokens that are written on trial. */
const TRIED_TOKENS = 8;
/** By how much the probabilities may differ, all together: rounding differs between the paths. 2 is the most. */
const UNLIKE = 0.1;

/**
 * Writes a few tokens on transformers.js, rewinds its cache as conversations do, and then finds out whether the graph does
 * the same with a shared cache. Throws, saying why, if it does not work at all.
 */
export async function tryModel(
  files: ModelFiles,
  settings: ProcessSettings,
  model: AddedModel,
  shape: Omit<CacheShape, "contextTokens"> | undefined,
): Promise<Trial> {
  await files.verify("native/");
  const tokenizer = await openTokenizer(model.folder);
  const prompt = tokenizer.layOut([{ role: "user", content: "Hello!" }], 2_000).flatMap(tokenizer.encode);
  const usual = await openTransformersStepper(model, settings);
  const written: number[] = [];
  const expected: Float32Array[] = [await usual.step(0, 0, prompt).then(copy)];
  while (written.length < TRIED_TOKENS) {
    const token = chooseToken(copy(expected.at(-1)), [], { ...SAMPLING, temperature: 0, repetition: 1 }, () => 0);
    if (tokenizer.ends.has(token)) break;
    written.push(token);
    expected.push(copy(await usual.step(0, prompt.length + written.length - 1, [token])));
  }
  const again = await usual.step(0, prompt.length - 1, prompt.slice(-1));
  if (!isAlike(again, expected[0])) throw new Error("its cache cannot be rewound, which conversations need");
  const fast = usual.form === null || shape === undefined ? null : { ...usual.form, shape };
  const shares =
    fast !== null && (await writesAlike(() => openFast(files, settings, model, fast), prompt, written, expected));
  return { text: textOf(tokenizer, written), fast: shares ? fast : null, callsTools: tokenizer.callOpening !== null };
}

/** Whether the same tokens lead to the same logits. A graph of another form fails, or computes something else. */
async function writesAlike(
  open: () => Promise<Stepper>,
  prompt: readonly number[],
  written: readonly number[],
  expected: readonly Float32Array[],
): Promise<boolean> {
  try {
    const stepper = await open();
    for (const [at, logits] of expected.entries()) {
      const [past, tokens] = at === 0 ? [0, prompt] : [prompt.length + at - 1, written.slice(at - 1, at)];
      if (!isAlike(await stepper.step(0, past, tokens), logits)) return false;
    }
    return true;
  } catch {
    return false;
  }
}

const copy = (logits: Float32Array | undefined): Float32Array => (logits ?? new Float32Array()).slice();

const textOf = (tokenizer: Tokenizer, tokens: number[]): string =>
  new TextDecoder().decode(Buffer.concat(tokens.map(tokenizer.bytesOf)));

/** Whether they give the tokens about the same probabilities. */
function isAlike(one: Float32Array, other: Float32Array | undefined): boolean {
  if (other === undefined || one.length !== other.length) return false;
  const [a, b] = [probabilities(one), probabilities(other)];
  return a.reduce((sum, value, at) => sum + Math.abs(value - (b[at] ?? 0)), 0) < UNLIKE;
}

function probabilities(logits: Float32Array): Float32Array {
  const most = logits.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const weights = logits.map((logit) => Math.exp(logit - most));
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / sum);
}
