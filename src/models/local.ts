/**
 * The local engine: SmolLM2-135M-Instruct and all-MiniLM-L6-v2, which ship with Roost, each in a process of its own
 * (`local/process.ts`) that `local/supervisor.ts` keeps alive. This side turns requests into messages to them.
 */
import { type ModelAbilities, type ModelEngine, ModelError, type ModelEvent, type ModelRequest } from "./engine.ts";
import { answerBy, asChat, refuseEndless } from "./local/answer.ts";
import { EMBED_MODEL } from "./local/embedder.ts";
import { createEmbeddings, EMBEDDING_THREADS, type EmbedTexts } from "./local/embeddings.ts";
import { defaultThreads } from "./local/physical-cores.ts";
import type { ProcessSettings } from "./local/protocol.ts";
import { createQueue } from "./local/queue.ts";
import { CONTEXT_TOKENS } from "./local/stepper.ts";
import { createSupervisor, type Log, modelProcessCommand } from "./local/supervisor.ts";
import { OFFERED } from "./local/tools/offered.ts";
import { LOCAL_MODEL } from "./local-models.ts";

export interface LocalEngineOptions {
  /** The folder into which a compiled binary unpacks the models once, about 162 MiB. */
  cacheDir: string;
  /** Each process is stopped after this time without work. */
  idleMs: number;
  log: Log;
  /** Threads of one inference; by default the physical cores minus one. */
  threads?: number;
  /** Conversations that are answered or cached at once. */
  slots?: number;
  /** Rows of all conversations' caches kept in memory, 46 KB each; idle conversations are evicted. */
  cacheTokens?: number;
  /** A process that has work but is silent for this long is killed. */
  silentMs?: number;
  command?: string[];
  stepper?: "ffi" | "ort";
  /** The maximum tokens of one answer. */
  answerTokens?: number;
  /** Makes the answers repeatable. */
  seed?: number;
  /** Whether answers are checked while they are generated (guarded-generation.ts); true by default. */
  guarded?: boolean;
}

export interface LocalStats {
  loaded: boolean;
  /** The process that writes answers, while it is running. */
  pid: number | undefined;
  /** The one that computes vectors. */
  embeddingPid: number | undefined;
  /** How many times the one that writes answers was started. */
  starts: number;
  active: number;
  queued: number;
  promptTokens: number;
  /** Prompt tokens that were in the cache and not computed. */
  cachedTokens: number;
  completionTokens: number;
}

export interface LocalEngine extends ModelEngine {
  embed: EmbedTexts;
  stats(): LocalStats;
  close(): Promise<void>;
}

/** How many requests of one instance the model process has at once: a few, so that it never waits for the next. */
const MAX_PER_INSTANCE = 8;
/** For the start of the embedding model. */
const START_MS = 20_000;
const DEFAULT_MAX_TOKENS = 256;
/** JSON that is cut is none. */
const OUTPUT_MAX_TOKENS = 512;
const DEFAULT_TEMPERATURE = 0.2;

export function createLocalEngine(options: LocalEngineOptions): LocalEngine {
  const settings: ProcessSettings = {
    cacheDir: options.cacheDir,
    threads: options.threads ?? defaultThreads(),
    slots: options.slots ?? 4,
    cacheTokens: options.cacheTokens ?? CONTEXT_TOKENS,
    stepper: options.stepper ?? "ffi",
  };
  const { idleMs, log, silentMs = 60_000, answerTokens = CONTEXT_TOKENS, command = modelProcessCommand() } = options;
  const embedder = createSupervisor({
    command,
    settings: { ...settings, threads: EMBEDDING_THREADS },
    idleMs,
    silentMs,
    log,
    name: EMBED_MODEL,
  });
  const embed = createEmbeddings(embedder);
  const supervisor = createSupervisor({
    command,
    settings,
    idleMs,
    silentMs,
    log,
    embed: (texts, signal) => embed(texts, signal, { whoWaits: "everybody" }),
    onLoaded() {
      if (options.guarded ?? true) startEmbedder();
    },
  });
  /**
   * Most first words wait for vectors. So the process that computes them starts as soon as the model is loaded, and not
   * before, when both would load at once: the first words of a fresh host come after 0.8 s instead of 1.0 s.
   */
  function startEmbedder(): void {
    embed(["Hello"], AbortSignal.timeout(START_MS), { whoWaits: "everybody" }).catch(() => {
      // Whoever needs vectors is told what is wrong.
    });
  }
  const totals = { promptTokens: 0, cachedTokens: 0, completionTokens: 0 };
  const queue = createQueue(MAX_PER_INSTANCE);
  let lastId = 0;

  function answerTokensOf({ maxTokens, output }: Pick<ModelRequest, "maxTokens" | "output">): number {
    return Math.max(1, Math.min(maxTokens ?? (output ? OUTPUT_MAX_TOKENS : DEFAULT_MAX_TOKENS), answerTokens));
  }

  async function* answer(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent[], void> {
    refuseUnknown(request.model);
    const messages = asChat(request.messages);
    refuseEndless(messages, CONTEXT_TOKENS);
    // Its patterns take milliseconds to load, and a start has no time for them.
    const { toolUseOf } = await import("./local/tools/tool-use.ts");
    // A tool's result is told in fixed words, which have no other form.
    const tools = request.output === undefined ? toolUseOf(request) : undefined;
    const leave = await queue.enter(request.instanceId, signal);
    try {
      request.onSent?.();
      yield* answerBy(
        supervisor,
        {
          id: ++lastId,
          accountId: request.accountId,
          instanceId: request.instanceId,
          messages,
          ...(tools === undefined ? {} : { tools }),
          maxTokens: answerTokensOf(request),
          temperature: request.temperature ?? DEFAULT_TEMPERATURE,
          stop: request.stop ?? [],
          ...(request.output && { output: request.output.schema }),
          guarded: options.guarded ?? true,
          ...(options.seed === undefined ? {} : { seed: options.seed }),
        },
        signal,
        {
          onStarted(promptTokens, cachedTokens) {
            totals.promptTokens += promptTokens;
            totals.cachedTokens += cachedTokens;
          },
          onDone(completionTokens) {
            totals.completionTokens += completionTokens;
          },
          failed,
          runId: request.runId,
        },
      );
    } finally {
      leave();
    }
  }

  return {
    abilities(model): ModelAbilities {
      refuseUnknown(model);
      return { contextTokens: CONTEXT_TOKENS, tools: OFFERED, prompt: "short" };
    },
    answerTokens: answerTokensOf,
    stream: answer,
    embed,
    stats() {
      const process = supervisor.stats();
      const queued = process.queued + queue.waiting();
      return { loaded: process.pid !== undefined, ...process, embeddingPid: embedder.stats().pid, queued, ...totals };
    },
    async close() {
      await Promise.all([supervisor.close(), embedder.close()]);
    },
  };
}

function refuseUnknown(model: string): void {
  if (model === LOCAL_MODEL) return;
  throw new ModelError(
    "unknown_model",
    `There is no model "${model}" on this host. The built-in one is "${LOCAL_MODEL}"; a stronger one is reached as "openai:<name>".`,
  );
}

const failed = (reason: string) =>
  new ModelError("broken", "The local model could not answer. Send the message again.", { detail: reason });
