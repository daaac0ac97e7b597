import { z } from "zod";
import { readBoundedText } from "../lib/bounded-text.ts";
import { OUTGOING } from "../limits/outgoing.ts";

/** Where Ollama is looked for, and how long it may take to answer. */
export interface OllamaPlace {
  /** With `/v1`, as `ROOST_OPENAI_BASE_URL` expects it. */
  baseUrl: string;
  deadlineMs: number;
}

/** Ollama's default address. */
export const OLLAMA: OllamaPlace = {
  baseUrl: "http://127.0.0.1:11434/v1",
  deadlineMs: OUTGOING.ollama.deadlineMs,
};

/** A running Ollama and its models. */
export interface NearbyOllama {
  baseUrl: string;
  /** In Ollama's order, newest first. */
  models: string[];
}

const CACHE_MS = 30_000;
const MAX_MODELS = 100;
/** Names are shown in commands to paste, and whatever listens on that port could send any text. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$/;
/** Embedding models cannot chat. The list does not mark them, but their names show it. */
const EMBEDS = /embed|minilm|(^|[/-])bge-/i;
const List = z.lazy(() => z.object({ data: z.array(z.object({ id: z.string() })) }));

/**
 * Finds Ollama on this machine; null if it is not running or has no chat model. The result is cached for half a minute,
 * and concurrent callers share one request.
 */
export function createOllamaWatch(place: OllamaPlace, now: () => number): () => Promise<NearbyOllama | null> {
  let cached: { atMs: number; found: Promise<NearbyOllama | null> } | undefined;
  return () => {
    if (cached === undefined || now() - cached.atMs >= CACHE_MS) {
      cached = { atMs: now(), found: findOllama(place) };
    }
    return cached.found;
  };
}

/** The Ollama there; null if it does not answer in time or has no chat model. */
export const findOllama = (place: OllamaPlace = OLLAMA): Promise<NearbyOllama | null> => look(place).catch(() => null);

async function look({ baseUrl, deadlineMs }: OllamaPlace): Promise<NearbyOllama | null> {
  const signal = AbortSignal.timeout(deadlineMs);
  const answer = await fetch(`${baseUrl}/models`, { redirect: "error", signal });
  const list = List.safeParse(JSON.parse(await readBoundedText(answer, OUTGOING.ollama.answerBytes)));
  if (!answer.ok || !list.success) return null;
  const names = list.data.data.map(({ id }) => id).filter((id) => NAME.test(id) && !EMBEDS.test(id));
  return names.length === 0 ? null : { baseUrl, models: names.slice(0, MAX_MODELS) };
}
