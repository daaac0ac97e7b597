import { z } from "zod";
import { readBoundedText } from "../lib/bounded-text.ts";
import { OUTGOING } from "../limits/outgoing.ts";

/** Where an Ollama answers unless it was told otherwise: on loopback. With its `/v1`, as `ROOST_OPENAI_BASE_URL` takes it. */
export const OLLAMA_URL = "http://127.0.0.1:11434/v1";

/** An Ollama that answers, and what it has to offer. */
export interface NearbyOllama {
  baseUrl: string;
  /** In its own order, newest first. */
  models: string[];
}

const REMEMBERED_MS = 30_000;
const MOST_MODELS = 100;
/** A name is shown in a command to paste: whoever listens on that port could call a model anything. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$/;
/** Those that only embed cannot answer. The list does not say it; their names do. */
const EMBEDS = /embed|minilm|(^|[/-])bge-/i;
const List = z.object({ data: z.array(z.object({ id: z.string() })) });

/**
 * Looks whether an Ollama answers on this machine: null where none does, or where it has no model that talks. Asked again
 * within half a minute it says the same, and who asks meanwhile waits for the same look.
 */
export function createOllamaWatch(baseUrl: string, now: () => number): () => Promise<NearbyOllama | null> {
  let looked: { atMs: number; found: Promise<NearbyOllama | null> } | undefined;
  return () => {
    if (looked === undefined || now() - looked.atMs >= REMEMBERED_MS) {
      looked = { atMs: now(), found: findOllama(baseUrl) };
    }
    return looked.found;
  };
}

/** The Ollama that answers there; null where none does within a second, or none that has a model that talks. */
export const findOllama = (baseUrl: string = OLLAMA_URL): Promise<NearbyOllama | null> =>
  look(baseUrl).catch(() => null);

async function look(baseUrl: string): Promise<NearbyOllama | null> {
  const { deadlineMs, answerBytes } = OUTGOING.ollama;
  const signal = AbortSignal.timeout(deadlineMs);
  const answer = await fetch(`${baseUrl}/models`, { redirect: "error", signal });
  const list = List.safeParse(JSON.parse(await readBoundedText(answer, answerBytes)));
  if (!answer.ok || !list.success) return null;
  const names = list.data.data.map(({ id }) => id).filter((id) => NAME.test(id) && !EMBEDS.test(id));
  return names.length === 0 ? null : { baseUrl, models: names.slice(0, MOST_MODELS) };
}
