/** The loaded chat model: takes requests and reports what happens to them. */
import { join } from "node:path";
import { createConstrainedGeneration } from "./constrained-generation.ts";
import type { Embed } from "./embedder.ts";
import type { ModelFiles } from "./files.ts";
import { createGeneration, type Generation, type GenerationOptions } from "./generation.ts";
import { createGuardedGeneration } from "./guarded-generation.ts";
import { createGuard, languageOfChat } from "./guards.ts";
import { nameTold } from "./introduction.ts";
import { lengthWished } from "./length-wish.ts";
import { openingsFor } from "./openings.ts";
import { createPrefixCache } from "./prefix-cache.ts";
import type { ChatMessage, Generate, ModelToHost, ProcessSettings } from "./protocol.ts";
import { createReading, PromptTooLong, type Reading } from "./reading.ts";
import { SAMPLING, seededRandom } from "./sampling.ts";
import { createScheduler } from "./scheduler.ts";
import { CONTEXT_TOKENS, type Stepper, type StepperOptions } from "./stepper.ts";
import { openFfiStepper } from "./stepper-ffi.ts";
import { subjectOf } from "./subject.ts";
import { openTokenizer } from "./tokenizer.ts";
import { withTools } from "./tools/use-tools.ts";
import { createFindWanted } from "./tools/wanted.ts";

export const CHAT_MODEL = "smollm2-135m-instruct";
/** A prompt that leaves less room than this for the answer counts as too long. */
const LEAST_ANSWER_TOKENS = 64;
const LIMIT_TOKENS = CONTEXT_TOKENS - LEAST_ANSWER_TOKENS;

export interface ChatModel {
  generate(request: Generate): void;
  cancel(id: number): void;
}

export async function openChatModel(
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
  });
  const scheduler = createScheduler(settings.slots);
  const cache = createPrefixCache({
    slots: settings.slots,
    budgetRows: settings.cacheTokens,
    copyRows: stepper.copyRows,
    discard: stepper.discard,
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

  return {
    cancel: scheduler.cancel,
    generate(request) {
      const { id, accountId, instanceId } = request;
      let release = () => {};

      function claim(prompt: readonly number[], answerTokens = 0) {
        release();
        const slot = cache.claim(instanceId, prompt, prompt.length + answerTokens);
        release = () => cache.release(slot);
        send({ type: "started", id, promptTokens: prompt.length, cachedTokens: slot.tokens.length });
        return slot;
      }

      function begin(prompt: number[]): Generation {
        const maxTokens = Math.min(request.maxTokens, CONTEXT_TOKENS - prompt.length);
        const slot = claim(prompt, maxTokens);
        const options: GenerationOptions = {
          prompt,
          slot,
          stepper,
          tokenizer,
          maxTokens,
          stop: request.stop.filter((text) => text !== ""),
          sampling: { ...SAMPLING, temperature: request.temperature },
          random: seededRandom(request.seed ?? Math.floor(Math.random() * 2 ** 32)),
        };
        if (request.output !== undefined) return createConstrainedGeneration(options, request.output);
        return request.guarded ? guarded(options, request.messages) : createGeneration(options);
      }

      const toolParts = { findWanted, tokenizer, stepper, claim };
      const answer = () => readThenWrite(createReading(tokenizer, request.messages, LIMIT_TOKENS), begin);
      scheduler.submit(id, {
        accountId,
        instanceId,
        start: () => (request.tools === undefined ? answer() : withTools(request.tools, toolParts, answer)),
        onTurn({ text, reason, call }, generation) {
          if (text !== "") send({ type: "text", id, text });
          if (reason === undefined) return;
          const completionTokens = generation.completionTokens();
          send({ type: "done", id, completionTokens, reason, ...(call === undefined ? {} : { call }) });
        },
        onError(error) {
          if (error instanceof PromptTooLong) send({ type: "overflow", id, ...tokensOf(error) });
          else send({ type: "failed", id, message: String(error) });
        },
        onEnd: () => release(),
      });
    },
  };
}

const tokensOf = ({ promptTokens, limitTokens }: PromptTooLong) => ({ promptTokens, limitTokens });

/** One job in turns: first the prompt is tokenised, then it runs. */
function readThenWrite(reading: Reading, begin: (prompt: number[]) => Generation): Generation {
  let generation: Generation | undefined;
  return {
    completionTokens: () => generation?.completionTokens() ?? 0,
    async takeTurn() {
      if (generation === undefined) {
        const prompt = reading.takeTurn();
        if (prompt === undefined) return { text: "" };
        // Tokenising the last piece is little work compared with a chunk, so a short message does not give up its turn
        // in between.
        generation = begin(prompt);
      }
      return await generation.takeTurn();
    },
  };
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
