import { createFairCache } from "../lib/fair-cache.ts";
import { type ModelEngine, ModelError } from "./engine.ts";
import type { Fetch } from "./openai/open-answer.ts";
import { createOpenAiEngine, USUAL_CONTEXT_TOKENS } from "./openai.ts";

/** The secrets by which an instance brings an OpenAI-compatible server of its own. */
export const OWN_SERVER_SECRETS = { url: "OPENAI_BASE_URL", key: "OPENAI_API_KEY" } as const;

/** The servers that instances bring. */
export interface OwnServers {
  /** Changes with the server's secrets; null if the instance brings none. */
  versionOf(instanceId: string): string | null;
  /** The secrets' values. Their use is audited. */
  read(instanceId: string): Promise<{ baseUrl: string; apiKey: string | undefined }>;
  /** Sends requests as those of an agent. */
  fetchFor(accountId: string, instanceId: string): Fetch;
}

/** Of each secret, in characters: a header of more is refused anywhere. */
const MAX_SECRET = 8_192;
/** Engines kept, all together and of one account. */
const MAX_KEPT = 1_000;
const MAX_KEPT_OF_ONE = 100;

/**
 * The engine for models of the servers that instances bring. Whoever brings a server also gets its error texts, which
 * otherwise only the operator sees.
 */
export function createOwnServerEngine(servers: OwnServers, answerTokens: number | undefined): ModelEngine {
  const kept = createFairCache<{ version: string | null; engine: ModelEngine }>(MAX_KEPT, MAX_KEPT_OF_ONE);
  // The same for every server.
  const { answerTokens: answerTokensOf } = createOpenAiEngine({
    baseUrl: "http://localhost",
    ...(answerTokens === undefined ? {} : { answerTokens }),
  });

  async function engineFor(accountId: string, instanceId: string): Promise<ModelEngine> {
    const version = servers.versionOf(instanceId);
    const known = kept.get(instanceId);
    if (known?.version === version) return known.engine;
    const { baseUrl, apiKey } = await servers.read(instanceId);
    if (baseUrl.length > MAX_SECRET || !/^https?:\/\//i.test(baseUrl) || !URL.canParse(baseUrl)) {
      throw new ModelError(
        "rejected",
        `The secret ${OWN_SERVER_SECRETS.url} is not a URL: expected one such as https://api.example.com/v1.`,
      );
    }
    if (apiKey !== undefined && apiKey.length > MAX_SECRET) {
      throw new ModelError(
        "rejected",
        `The secret ${OWN_SERVER_SECRETS.key} is no API key: expected at most ${MAX_SECRET} characters.`,
      );
    }
    const engine = createOpenAiEngine({
      baseUrl,
      apiKey,
      ...(answerTokens === undefined ? {} : { answerTokens }),
      keySetting: `the secret ${OWN_SERVER_SECRETS.key}`,
      urlSetting: `the secret ${OWN_SERVER_SECRETS.url}`,
      fetch: servers.fetchFor(accountId, instanceId),
    });
    kept.set(accountId, instanceId, { version, engine });
    engine.abilities("");
    return engine;
  }

  return {
    // A server is known from its first answer on: only then are the secrets read that say where it is.
    abilities(model, instanceId = "") {
      const known = kept.get(instanceId);
      if (known?.version === servers.versionOf(instanceId)) return known.engine.abilities(model);
      return { contextTokens: USUAL_CONTEXT_TOKENS, tools: true, prompt: "full", images: true };
    },
    answerTokens: answerTokensOf,
    async *stream(request, signal) {
      const engine = await engineFor(request.accountId, request.instanceId);
      try {
        yield* engine.stream(request, signal);
      } catch (error) {
        if (!(error instanceof ModelError) || error.detail === undefined) throw error;
        throw new ModelError(error.kind, error.detail, error.overflow ? { overflow: error.overflow } : {});
      }
    },
  };
}
