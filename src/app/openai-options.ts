import type { Config } from "../config.ts";
import type { Log } from "../lib/log.ts";
import type { OpenAiOptions } from "../models/openai.ts";

/** The operator's model server; null if there is none. */
export function openAiOptions({ openAiBaseUrl, openAiApiKey, answerTokens }: Config, log: Log): OpenAiOptions | null {
  if (openAiBaseUrl === null) return null;
  return {
    baseUrl: openAiBaseUrl,
    apiKey: openAiApiKey ?? undefined,
    answerTokens,
    passesTrace: true,
    log: (retry) => log.warn(retry, "model server: retrying"),
  };
}
