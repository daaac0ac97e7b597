/**
 * The engine for models that the operator has added (`roost models`). Each is loaded when it is needed, in a process of
 * its own: one that cannot be loaded, or crashes, hurts no other, and unloading gives all of its memory back. What is in
 * the store counts when a request arrives, so a running server uses a new model at once.
 */

import { LOCAL_PREFIX, nameOf } from "../lib/model-name.ts";
import { type ModelAbilities, type ModelEngine, ModelError, type ModelEvent, type ModelRequest } from "./engine.ts";
import { answerBy, asChat, refuseEndless, withCalls } from "./local/answer.ts";
import { defaultThreads } from "./local/physical-cores.ts";
import { createPlaces, type Wanted } from "./local/places.ts";
import type { ProcessSettings } from "./local/protocol.ts";
import { createQueue } from "./local/queue.ts";
import { createSupervisor, type Log, modelProcessCommand, type Supervisor } from "./local/supervisor.ts";
import { LOCAL_MODEL } from "./local-models.ts";
import { CACHED_CONTEXTS } from "./store/add.ts";
import { writeLoaded } from "./store/loaded.ts";
import { type Manifest, sizeOf } from "./store/manifest.ts";
import { findModel, listModels, missingFiles, type StoredModel } from "./store/store.ts";

export interface AddedEngineOptions {
  dataDir: string;
  /** For what a compiled binary unpacks. */
  cacheDir: string;
  /** Of all loaded models together. */
  memoryBytes: number;
  /** A model is unloaded after this time without work. */
  idleMs: number;
  log: Log;
  /** Threads of one inference; by default the physical cores minus one. */
  threads?: number;
  /** The maximum tokens of one answer. */
  answerTokens?: number;
  /** How long a model's process may be silent, while it loads and while it writes. */
  silentMs?: number;
  command?: string[];
  /** Makes the answers repeatable. */
  seed?: number;
}

/** Loading several gigabytes from a slow disk takes a minute; so does a chunk of a prompt in a large model. */
const SILENT_MS = 120_000;
/** How many requests of one instance a model has at once. */
const MAX_PER_INSTANCE = 8;
/** Conversations that one model answers, or keeps warm, at once. */
const SLOTS = 4;
/** Enough for a page of a file. */
const DEFAULT_MAX_TOKENS = 1_024;
/** A model with smaller weights repeats what it reads, so its prompt is short. */
const SMALL_BYTES = 512 * 1024 * 1024;

export function createAddedEngine(options: AddedEngineOptions): ModelEngine & { close(): Promise<void> } {
  const { dataDir, memoryBytes, log, silentMs = SILENT_MS, answerTokens = Number.POSITIVE_INFINITY } = options;
  const queue = createQueue(MAX_PER_INSTANCE);
  const pids = new Map<string, number>();
  let lastId = 0;

  /** Only a list that the operator asks for depends on it, so a full disk takes no model from anybody. */
  function tellLoaded(): void {
    try {
      writeLoaded(dataDir, [...pids.keys()]);
    } catch (err) {
      log.warn({ err }, "which models are loaded could not be written; `roost models list` does not show it");
    }
  }
  tellLoaded();

  const places = createPlaces<Supervisor>({
    budgetBytes: memoryBytes,
    open: ({ name }) => open(find(name)),
    isLoaded: (supervisor) => supervisor.stats().pid !== undefined,
    close: (supervisor) => supervisor.close(),
  });

  function open({ manifest, folder }: StoredModel): Supervisor {
    const { name, dtype, contextTokens, fast, files } = manifest;
    const settings: ProcessSettings = {
      cacheDir: options.cacheDir,
      threads: options.threads ?? defaultThreads(),
      slots: SLOTS,
      cacheTokens: CACHED_CONTEXTS * contextTokens,
      stepper: "ffi",
      model: { name, folder, dtype, contextTokens, fast, files },
    };
    const command = options.command ?? modelProcessCommand();
    return createSupervisor({
      command,
      settings,
      idleMs: options.idleMs,
      silentMs,
      log,
      onProcess(pid) {
        if (pid === undefined) pids.delete(name);
        else pids.set(name, pid);
        tellLoaded();
      },
    });
  }

  /** Throws `ModelError` if the host has no such model, or not its files. */
  function find(name: string): StoredModel {
    const model = findModel(dataDir, name);
    if (model === null) throw unknown(dataDir, name);
    return model;
  }

  function wantedOf(model: StoredModel): Wanted {
    const { name, addedAt, memoryBytes: bytes } = model.manifest;
    const [missing] = missingFiles(model);
    if (missing !== undefined) {
      throw new ModelError("unavailable", `The files of ${LOCAL_PREFIX}${name} are missing. ${ASK}`, {
        detail: `${model.folder} has no whole ${missing}: pull or import the model again`,
      });
    }
    if (bytes <= memoryBytes) return { name, version: addedAt, bytes };
    throw new ModelError(
      "unavailable",
      `${LOCAL_PREFIX}${name} needs more memory than this host gives models. ${ASK}`,
      {
        detail: `it needs ${mebibytes(bytes)} MiB, ROOST_MODEL_MEMORY allows ${mebibytes(memoryBytes)}`,
      },
    );
  }

  const answerTokensOf = ({ maxTokens }: Pick<ModelRequest, "maxTokens">) =>
    Math.max(1, Math.min(maxTokens ?? DEFAULT_MAX_TOKENS, answerTokens));

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent[], void> {
    const model = find(nameOf(request.model));
    const wanted = wantedOf(model);
    const { tools, output } = request;
    const { callsTools = false, contextTokens } = model.manifest;
    const messages = callsTools ? withCalls(request.messages) : asChat(request.messages);
    const helped = callsTools ? await import("./added-tools.ts") : undefined;
    const shown = output === undefined ? helped?.shownAsAnswer(request) : undefined;
    if (shown !== undefined) {
      yield shown;
      return;
    }
    refuseEndless(messages, contextTokens, JSON.stringify(tools).length);
    const { accountId, instanceId, temperature, stop = [] } = request;
    const leaveQueue = await queue.enter(instanceId, signal);
    try {
      const { value: supervisor, leave } = await places.take(wanted, accountId, signal);
      try {
        request.onSent?.();
        const maxTokens = answerTokensOf(request);
        const asked = { id: ++lastId, accountId, instanceId, messages, maxTokens, stop, guarded: false };
        const answer = answerBy(
          supervisor,
          {
            ...asked,
            ...(temperature === undefined ? {} : { temperature }),
            ...(output && { output: output.schema }),
            ...(helped && tools.length > 0 && helped.functionsOf(request)),
            ...(options.seed === undefined ? {} : { seed: options.seed }),
          },
          signal,
          { failed: (reason, loading) => failed(request.model, reason, loading), runId: request.runId },
        );
        yield* helped ? helped.withWords(answer, request) : answer;
      } finally {
        leave();
      }
    } finally {
      leaveQueue();
    }
  }

  return {
    abilities: (model) => abilitiesOf(find(nameOf(model)).manifest),
    answerTokens: answerTokensOf,
    stream,
    close: () => places.close(),
  };
}

const mebibytes = (bytes: number): number => Math.ceil(bytes / 1024 / 1024);

const abilitiesOf = (manifest: Manifest): ModelAbilities => ({
  contextTokens: manifest.contextTokens,
  tools: manifest.callsTools === true,
  prompt: sizeOf(manifest) < SMALL_BYTES ? "short" : "full",
});

const ASK = "Choose another model for this agent, or ask the host's operator.";
const MAX_NAMED = 10;

function unknown(dataDir: string, name: string): ModelError {
  const added = listModels(dataDir).map(({ manifest }) => `, "${LOCAL_PREFIX}${manifest.name}"`);
  const more = added.slice(0, MAX_NAMED).join("");
  return new ModelError(
    "unknown_model",
    `There is no model "${LOCAL_PREFIX}${name}" on this host. It has "${LOCAL_MODEL}"${more}; a stronger one is reached as "openai:<name>".`,
  );
}

const failed = (model: string, reason: string, loading: boolean): ModelError =>
  loading
    ? new ModelError("unavailable", `The model ${model} could not be loaded. ${ASK}`, { detail: reason })
    : new ModelError("broken", `The model ${model} could not answer. Send the message again.`, { detail: reason });
