import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config.ts";
import type { Clock } from "../lib/clock.ts";
import { createOllamaWatch } from "../models/ollama.ts";
import type { HostRouteParts } from "../models/routes.ts";

/** A line that settles in the settings file what the host answers with. */
const SETTLED = /^\s*(model|openai_base_url)\s*=/m;

/**
 * What the console offers where nobody has said which model the host uses: an Ollama on this machine, to be written into
 * the settings file. Null where the operator has said it, wherever: an offer would only argue, and the environment would
 * win over what is written.
 */
export function modelOffer(
  { dataDir, openAiBaseUrl }: Config,
  clock: Pick<Clock, "now">,
  ollamaUrl: string,
  environment: Record<string, string | undefined> = process.env,
): HostRouteParts["offer"] {
  const settingsFile = join(dataDir, "roost.toml");
  const inFile = existsSync(settingsFile) && SETTLED.test(readFileSync(settingsFile, "utf8"));
  if (openAiBaseUrl !== null || environment.ROOST_MODEL !== undefined || inFile) return null;
  return { ollama: createOllamaWatch(ollamaUrl, clock.now), settingsFile };
}
