import type { ModelChoice } from "./choice.ts";
import { type ModelEngine, ModelError } from "./engine.ts";
import { createLocalEngine, type LocalEngineOptions } from "./local.ts";
import { createOpenAiEngine, type OpenAiOptions } from "./openai.ts";

/** The host's engines. */
export interface Engines {
  /** The engine that answers for `local:…` or `openai:…`. Throws `ModelError` for a model that agents may not use. */
  of(model: string): ModelEngine;
  close(): Promise<void>;
}

export function createEngines(
  local: LocalEngineOptions,
  openai: OpenAiOptions | null,
  choice: Pick<ModelChoice, "allows" | "expected">,
): Engines {
  const localEngine = createLocalEngine(local);
  const openAiEngine = openai && createOpenAiEngine(openai);
  return {
    of(model) {
      if (model.startsWith("local:")) return localEngine;
      const refusal = `This host does not offer the model "${model}": choose another for this agent`;
      // The agent may have been created while the host still allowed this model.
      if (!choice.allows(model)) throw new ModelError("rejected", `${refusal}, ${choice.expected}.`);
      if (openAiEngine && model.startsWith("openai:")) return openAiEngine;
      const detail = `the model ${model} needs an OpenAI-compatible server: set ROOST_OPENAI_BASE_URL`;
      throw new ModelError("rejected", `${refusal}, or ask the host's operator.`, { detail });
    },
    close: () => localEngine.close(),
  };
}
