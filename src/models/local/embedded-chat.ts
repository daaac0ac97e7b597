/** The embedded chat model: SmolLM2 with its guards, openings and tools. */
import { join } from "node:path";
import { type ChatModel, createChatModel } from "./chat-model.ts";
import type { Embed } from "./embedder.ts";
import type { ModelFiles } from "./files.ts";
import type { Generation, GenerationOptions } from "./generation.ts";
import { createGuardedGeneration } from "./guarded-generation.ts";
import { createGuard, languageOfChat } from "./guards.ts";
import { nameTold } from "./introduction.ts";
import { lengthWished } from "./length-wish.ts";
import { openingsFor } from "./openings.ts";
import type { ChatMessage, ModelToHost, ProcessSettings } from "./protocol.ts";
import { SAMPLING } from "./sampling.ts";
import { SMOLLM2, type Stepper, type StepperOptions } from "./stepper.ts";
import { openFfiStepper } from "./stepper-ffi.ts";
import { subjectOf } from "./subject.ts";
import { openTokenizer } from "./tokenizer.ts";
import { withTools } from "./tools/use-tools.ts";
import { createFindWanted } from "./tools/wanted.ts";

export const CHAT_MODEL = "smollm2-135m-instruct";

export async function openEmbeddedChat(
  files: ModelFiles,
  settings: ProcessSettings,
  send: (message: ModelToHost) => void,
  loadEmbedder: () => Promise<Embed>,
): Promise<ChatModel> {
  const folder = join(files.modelsFolder, CHAT_MODEL);
  await files.verify("native/");
  await files.verify(`models/${CHAT_MODEL}/`);
  const tokenizer = await openTokenizer(folder);
  const { stepper, fellBackBecause } = await openStepper(files.library, settings, {
    modelFile: join(folder, "onnx/model_q4.onnx"),
    threads: settings.threads,
    slots: settings.slots,
    shape: SMOLLM2,
  });
  const findWanted = createFindWanted(loadEmbedder);
  Bun.gc(true); // frees what reading the tokenizer left behind
  send({ type: "loaded", stepper: stepper.kind, ...(fellBackBecause === undefined ? {} : { fellBackBecause }) });

  function guarded(options: GenerationOptions, messages: ChatMessage[]): Generation {
    const question = messages.findLast(({ role }) => role === "user")?.content ?? "";
    const subject = subjectOf(messages);
    const name = nameTold(messages);
    let wanted: Promise<Float32Array[]> | undefined;
    return createGuardedGeneration({
      ...options,
      guard: createGuard(messages),
      wish: lengthWished(messages),
      openings: openingsFor(question, languageOfChat(messages)).map(tokenizer.encode),
      name: name === null ? [] : tokenizer.encode(` ${name}`),
      nearEnough: subject.enough,
      async nearness(text) {
        if (subject.texts.length === 0) return 1;
        const embed = await loadEmbedder();
        wanted ??= embed(subject.texts);
        const [[vector], others] = [await embed([text]), await wanted];
        return Math.max(...others.map((other) => dot(vector, other)));
      },
    });
  }

  return createChatModel({
    tokenizer,
    stepper,
    slots: settings.slots,
    cacheTokens: settings.cacheTokens,
    contextTokens: SMOLLM2.contextTokens,
    sampling: SAMPLING,
    send,
    guarded,
    useTools: (use, claim, answer) => withTools(use, { findWanted, tokenizer, stepper, claim }, answer),
  });
}

/** The fast stepper or, if it cannot be opened, the portable one with the reason. */
async function openStepper(
  library: string,
  settings: ProcessSettings,
  options: StepperOptions,
): Promise<{ stepper: Stepper; fellBackBecause?: string }> {
  // Imported only when needed: the binding opens its native library as it loads.
  const portable = async () => (await import("./stepper-ort.ts")).openOrtStepper(options);
  if (settings.stepper === "ort") return { stepper: await portable() };
  try {
    return { stepper: openFfiStepper(library, options) };
  } catch (error) {
    return { stepper: await portable(), fellBackBecause: String(error) };
  }
}

const dot = (a: Float32Array | undefined, b: Float32Array | undefined): number =>
  a?.reduce((sum, value, at) => sum + value * (b?.[at] ?? 0), 0) ?? 0;
