import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config.ts";
import type { Clock } from "../lib/clock.ts";
import { createOllamaWatch, type OllamaPlace } from "../models/ollama.ts";
import type { HostRouteParts } from "../models/routes.ts";

/** A line in the settings file that chooses the model. */
const CHOOSES_MODEL = /^\s*(model|openai_base_url)\s*=/m;

/**
 * If the operator has not chosen a model, the console offers to write an Ollama on this machine into the settings file.
 * Null if one is chosen, in the file or the environment (which would override the file anyway).
 */
export function modelOffer(
  { dataDir, openAiBaseUrl }: Config,
  clock: Pick<Clock, "now">,
  place: OllamaPlace,
  environment: Record<string, string | undefined> = process.env,
): HostRouteParts["offer"] {
  const settingsFile = join(dataDir, "roost.toml");
  const inFile = existsSync(settingsFile) && CHOOSES_MODEL.test(readFileSync(settingsFile, "utf8"));
  if (openAiBaseUrl !== null || environment.ROOST_MODEL !== undefined || inFile) return null;
  return { ollama: createOllamaWatch(place, clock.now), settingsFile };
}
