/** The embedded chat model: SmolLM2 with its guards, openings and tools. */
import { join } from "node:path";
import { asksForCode, asksForCorrection } from "../../lib/questions.ts";
import { type ChatModel, createChatModel } from "./chat-model.ts";
import type { Embed } from "./embedder.ts";
import { CHAT_MODEL, CHAT_MODEL_FILE, type ModelFiles } from "./files.ts";
import type { Generation, GenerationOptions } from "./generation.ts";
import { createGuardedGeneration } from "./guarded-generation.ts";
import { createGuard, languageOfChat } from "./guards.ts";
import { createGuidance, type Guide, wantsGuidance, withOtherMessage } from "./guidance.ts";
import { introductionsFor, isAssistant, nameTold } from "./introduction.ts";
import { lengthWished, ONE_SENTENCE } from "./length-wish.ts";
import { continuationFor, openingsFor } from "./openings.ts";
import type { Handle } from "./ort-api.ts";
import type { Slot } from "./prefix-cache.ts";
import type { ChatMessage, ModelToHost, ProcessSettings } from "./protocol.ts";
import { PIECE_CHARACTERS } from "./reading.ts";
import { type Recall, recallOf, towards } from "./recall.ts";
import { replyTo } from "./replies.ts";
import { SAMPLING } from "./sampling.ts";
import type { Aside } from "./scheduler.ts";
import type { SessionReply, SessionTask } from "./session-thread.ts";
import { SMOLLM2, type Stepper, type StepperOptions } from "./stepper.ts";
import { EMBEDDED_FORM, openFfiStepper } from "./stepper-ffi.ts";
import { subjectOf } from "./subject.ts";
import { openTokenizer } from "./tokenizer.ts";
import { withTools } from "./tools/use-tools.ts";
import { createFindWanted } from "./tools/wanted.ts";

/** What was told is told to "you", and not asked; a number that was not told is made up. */
const NOT_RECALLED = ["?", " I", " my", " me", " we", " our", ..." 0123456789"];
/** For code and corrections, which repeat words; without any, a pattern goes on and on. */
const LIGHT_REPETITION = 1.03;
const UNGUIDED: Guide = async (logits) => logits;

export async function openEmbeddedChat(
  files: ModelFiles,
  settings: ProcessSettings,
  send: (message: ModelToHost) => void,
  embed: Embed,
): Promise<ChatModel> {
  const folder = join(files.modelsFolder, CHAT_MODEL);
  const session = settings.stepper === "ort" ? undefined : openSessionAside(settings);
  await files.verify("native/");
  await files.verify(`models/${CHAT_MODEL}/tokenizer`);
  const tokenizer = await openTokenizer(folder);
  Bun.gc(true); // frees what reading the tokenizer left behind
  const { stepper, fellBackBecause } = await openStepper(files, session, {
    modelFile: join(folder, CHAT_MODEL_FILE),
    threads: settings.threads,
    slots: 2 * settings.slots, // the second half is for guidance
    shape: SMOLLM2,
  });
  const findWanted = createFindWanted(embed);
  send({ type: "loaded", stepper: stepper.kind, ...(fellBackBecause === undefined ? {} : { fellBackBecause }) });

  const otherSlotOf = (slot: Slot) => settings.slots + slot.index;
  const guideTo = (question: string, { prompt, slot }: GenerationOptions, messages: ChatMessage[]): Guide => {
    if (!wantsGuidance(question, languageOfChat(messages))) return UNGUIDED;
    return createGuidance({
      stepper,
      slot,
      prompt,
      otherSlot: otherSlotOf(slot),
      otherPrompt: () => tokenizer.layOut(withOtherMessage(messages), PIECE_CHARACTERS).flatMap(tokenizer.encode),
    });
  };
  const towardsTold = ({ told }: Recall): Guide =>
    towards(
      told.flatMap((text) => tokenizer.encode(` ${text}`)),
      NOT_RECALLED.flatMap(tokenizer.encode),
    );

  function guarded(options: GenerationOptions, messages: ChatMessage[], aside: Aside): Generation {
    const question = messages.findLast(({ role }) => role === "user")?.content ?? "";
    const language = languageOfChat(messages);
    const subject = subjectOf(messages);
    const name = nameTold(messages);
    const introductions = introductionsFor(question, messages, language);
    const recall = recallOf(messages);
    const reply = recall === null ? replyTo(question, messages) : null;
    const isFixed = recall !== null || reply !== null;
    const continuation = language === "en" && recall === null ? continuationFor(question) : null;
    const repeatsWords = asksForCode(question) || asksForCorrection(question);
    // After its name and role, an assistant would make up more.
    const isTold = isFixed || (introductions.length > 0 && isAssistant(messages));
    const wish = isTold
      ? { ...ONE_SENTENCE, sentences: recall?.sentences ?? reply?.sentences ?? 1 }
      : lengthWished(messages);
    const listed = wish.items > 0 ? ["1."] : [];
    const openings =
      recall?.openings ??
      (reply === null ? [...introductions, ...listed, ...openingsFor(question, language)] : [reply.beginning]);
    let wanted: Promise<Float32Array[]> | undefined;
    return createGuardedGeneration({
      ...options,
      sampling: repeatsWords ? { ...options.sampling, repetition: LIGHT_REPETITION } : options.sampling,
      guard: createGuard(messages),
      guide: recall === null ? guideTo(question, options, messages) : towardsTold(recall),
      wish,
      openings: openings.map(tokenizer.encode),
      continuation: continuation && ((sentence) => tokenizer.encode(continuation(sentence))),
      name: name === null ? [] : tokenizer.encode(` ${name}`),
      nearEnough: subject.enough,
      nearWanted: subject.wanted,
      async nearness(text) {
        // The owner's own words are an answer to who it is, however few of them the question has.
        if (subject.texts.length === 0 || introductions.length > 0 || isFixed) return 1;
        wanted ??= embed(subject.texts);
        const vectors = Promise.all([embed([text]), wanted]);
        const [[vector], others] = await aside(() => vectors);
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
    // Its rows are of use to no other answer.
    onReleased: (slot) => stepper.discard(otherSlotOf(slot)),
    useTools(use, claim, aside, answer) {
      const wanted: typeof findWanted = (...asked) => aside(() => findWanted(...asked));
      return withTools(use, { findWanted: wanted, tokenizer, stepper, claim }, answer);
    },
  });
}

/** The fast stepper or, if it cannot be opened, the portable one with the reason. */
async function openStepper(
  files: ModelFiles,
  session: Promise<Handle> | undefined,
  options: StepperOptions,
): Promise<{ stepper: Stepper; fellBackBecause?: string }> {
  const portable = async () => {
    await files.verify(`models/${CHAT_MODEL}/`);
    // Imported only when needed: the binding opens its native library as it loads.
    return (await import("./stepper-ort.ts")).openOrtStepper(options);
  };
  if (session === undefined) return { stepper: await portable() };
  try {
    return { stepper: await openFfiStepper(files.library, options, EMBEDDED_FORM, session) };
  } catch (error) {
    return { stepper: await portable(), fellBackBecause: String(error) };
  }
}

/** In the binary, the thread is an entry point of its own. */
const THREAD_ADDRESS = import.meta.url.includes("$bunfs")
  ? "./models/local/session-thread.ts"
  : new URL("./session-thread.ts", import.meta.url).href;

/** Opens the model on a thread: it takes longer than everything else that the first answer waits for. */
function openSessionAside({ cacheDir, threads }: ProcessSettings): Promise<Handle> {
  const thread = new Worker(THREAD_ADDRESS, { env: {}, smol: true, ref: false });
  const opening = new Promise<Handle>((resolve, reject) => {
    const fail = (reason: string) => reject(new Error(reason));
    thread.onmessage = ({ data }: MessageEvent<SessionReply>) =>
      "session" in data ? resolve(data.session) : fail(data.failed);
    thread.onerror = ({ message }) => fail(message);
    thread.addEventListener("close", () => fail("the thread that opens the model ended"));
    thread.postMessage({ cacheDir, threads } satisfies SessionTask);
  }).finally(() => thread.terminate());
  opening.catch(() => {}); // whoever waits for it is told
  return opening;
}

const dot = (a: Float32Array | undefined, b: Float32Array | undefined): number =>
  a?.reduce((sum, value, at) => sum + value * (b?.[at] ?? 0), 0) ?? 0;
