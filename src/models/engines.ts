import { isLocal, isServed } from "../lib/model-name.ts";
import { type AddedEngineOptions, createAddedEngine } from "./added.ts";
import type { ModelChoice } from "./choice.ts";
import { type ModelEngine, ModelError } from "./engine.ts";
import { createLocalEngine, type LocalEngine, type LocalEngineOptions } from "./local.ts";
import { LOCAL_MODEL } from "./local-models.ts";
import { createOpenAiEngine, type OpenAiOptions } from "./openai.ts";
import { createOwnServerEngine, type OwnServers } from "./own-server.ts";

/** The host's engines. */
export interface Engines {
  /**
   * The engine that answers for `local:…` or `openai:…`. It, or its `stream`, throws `ModelError` for a model that agents
   * may not use.
   */
  of(model: string): ModelEngine;
  /** Asks the host's own server for what its models can do, so that the first run knows. */
  begin(): void;
  /** Always by the embedded model. */
  embed: LocalEngine["embed"];
  /** Whether the embedded model is answering somebody. */
  isChatting(): boolean;
  close(): Promise<void>;
}

export function createEngines(
  local: LocalEngineOptions & Pick<AddedEngineOptions, "dataDir" | "memoryBytes">,
  openai: OpenAiOptions | null,
  choice: Pick<ModelChoice, "allows" | "expected">,
  ownServers: OwnServers | null = null,
): Engines {
  const localEngine = createLocalEngine(local);
  const { dataDir, memoryBytes, cacheDir, idleMs, log, answerTokens } = local;
  const addedEngine = createAddedEngine({
    dataDir,
    memoryBytes,
    cacheDir,
    idleMs,
    log,
    ...(answerTokens === undefined ? {} : { answerTokens }),
  });
  const openAiEngine = openai && createOpenAiEngine(openai);
  const ownEngine = ownServers && createOwnServerEngine(ownServers, answerTokens);

  /** Throws `ModelError` for a model that this host has not, or does not let agents use. */
  function ofHost(model: string): ModelEngine {
    const refusal = `This host does not offer the model "${model}": choose another for this agent`;
    // The agent may have been created while the host still allowed this model.
    if (!choice.allows(model)) throw new ModelError("unknown_model", `${refusal}, ${choice.expected}.`);
    if (openAiEngine && isServed(model)) return openAiEngine;
    const detail = `the model ${model} needs an OpenAI-compatible server: set ROOST_OPENAI_BASE_URL`;
    throw new ModelError("unknown_model", `${refusal}, or ask the host's operator.`, { detail });
  }

  return {
    of(model) {
      if (model === LOCAL_MODEL) return localEngine;
      if (isLocal(model)) return addedEngine;
      if (ownServers === null || ownEngine === null || !isServed(model)) return ofHost(model);
      return {
        abilities: (name, instanceId = "") =>
          (ownServers.versionOf(instanceId) === null ? ofHost(name) : ownEngine).abilities(name, instanceId),
        answerTokens: ownEngine.answerTokens,
        // Whose server it is depends on the instance that asks.
        stream: (request, signal) =>
          (ownServers.versionOf(request.instanceId) === null ? ofHost(model) : ownEngine).stream(request, signal),
      };
    },
    begin: () => void openAiEngine?.abilities(""),
    embed: localEngine.embed,
    isChatting: () => localEngine.stats().active > 0,
    async close() {
      await Promise.all([localEngine.close(), addedEngine.close()]);
    },
  };
}
