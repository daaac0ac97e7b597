import { type ModelEngine, ModelError } from "./engine.ts";
import { createLocalEngine, type LocalEngineOptions } from "./local.ts";
import { createOpenAiEngine, type OpenAiOptions } from "./openai.ts";

/** The host's engines. */
export interface Engines {
  /** The engine that answers for `local:…` or `openai:…`. Throws `ModelError` that says what to configure. */
  of(model: string): ModelEngine;
  close(): Promise<void>;
}

export function createEngines(local: LocalEngineOptions, openai: OpenAiOptions | null): Engines {
  const localEngine = createLocalEngine(local);
  const openAiEngine = openai && createOpenAiEngine(openai);
  return {
    of(model) {
      if (model.startsWith("local:")) return localEngine;
      if (!model.startsWith("openai:")) {
        throw new ModelError(
          "rejected",
          `there is no engine for the model ${model}: expected local:<name> or openai:<name>`,
        );
      }
      if (openAiEngine) return openAiEngine;
      throw new ModelError(
        "rejected",
        `the model ${model} needs an OpenAI-compatible server: set ROOST_OPENAI_BASE_URL`,
      );
    },
    close: () => localEngine.close(),
  };
}
