import { readBoundedText } from "../lib/bounded-text.ts";
import { OUTGOING } from "../limits/outgoing.ts";

/** Where Ollama listens unless it is told otherwise. */
const USUAL_URL = "http://127.0.0.1:11434";
const { deadlineMs, answerBytes } = OUTGOING.ollama;

/** A model server on this machine that nobody has set up for Roost yet. */
export interface Ollama {
  /** What `ROOST_OPENAI_BASE_URL` takes. */
  baseUrl: string;
  /** The names of its models, the one that was changed last first; none where it has none yet. */
  models: string[];
}

/** The Ollama on this machine's usual port; null where none answers within half a second, as an Ollama does. */
export async function findOllama(url = USUAL_URL): Promise<Ollama | null> {
  try {
    const answer = await fetch(`${url}/api/tags`, { redirect: "error", signal: AbortSignal.timeout(deadlineMs) });
    const body: unknown = JSON.parse(await readBoundedText(answer, answerBytes));
    if (typeof body !== "object" || body === null || !("models" in body) || !Array.isArray(body.models)) return null;
    const models = body.models.flatMap((model: { name?: unknown } | null) =>
      // It is put into commands for a shell.
      typeof model?.name === "string" && /^[\w.:/-]{1,100}$/.test(model.name) ? [model.name] : [],
    );
    return { baseUrl: `${url}/v1`, models };
  } catch {
    return null; // nothing answers, or something else does
  }
}
