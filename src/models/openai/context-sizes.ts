import { z } from "zod";
import { readBoundedText } from "../../lib/bounded-text.ts";
import { withoutEnd } from "../../lib/without-end.ts";
import { OUTGOING } from "../../limits/outgoing.ts";
import type { Fetch } from "./open-answer.ts";

/** How large the contexts of a server's models are, as far as the server tells. */
export interface ContextSizes {
  /** In tokens; null where that is not known (yet). Asks the server again if what is known is old. */
  of(model: string): number | null;
  /** Resolves once the answer to the request in progress, if any, is known. */
  settled(): Promise<void>;
}

export interface ContextSizesOptions {
  /** With `/v1`. */
  baseUrl: string;
  apiKey?: string | undefined;
  fetch?: Fetch | undefined;
  /** For one answer. */
  deadlineMs?: number;
  now?: () => number;
}

const FRESH_MS = 10 * 60_000;
/** After a failure. */
const RETRY_MS = 60_000;
const MAX_MODELS = 1_000;
const MAX_NAME = 200;
/** What is less is no size of a context. */
const MIN_TOKENS = 256;
/** A server's word decides how long the prompts are that this host holds in memory, and an instance may bring the server. */
const MAX_TOKENS = 1_048_576;

const Size = z
  .int()
  .min(MIN_TOKENS)
  .transform((stated) => Math.min(stated, MAX_TOKENS))
  .optional()
  .catch(undefined);
const Model = z.lazy(() =>
  z.object({
    id: z.string().max(MAX_NAME),
    // vLLM; OpenRouter and others; llama.cpp.
    max_model_len: Size,
    context_length: Size,
    meta: z.object({ n_ctx: Size }).optional().catch(undefined),
  }),
);
const List = z.lazy(() => z.object({ data: z.array(z.unknown()) }));

/** Reads `/models` of an OpenAI-compatible server, at most one request at a time. */
export function createContextSizes({
  baseUrl,
  apiKey,
  fetch: guarded,
  deadlineMs = OUTGOING.modelList.deadlineMs,
  now = Date.now,
}: ContextSizesOptions): ContextSizes {
  const url = `${withoutEnd(baseUrl, "/")}/models`;
  const headers: Record<string, string> = { Accept: "application/json", "Accept-Encoding": "identity" };
  if (apiKey) headers.Authorization = `Bearer ${apiKey}`;
  let known = new Map<string, number>();
  let dueMs = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | null = null;

  async function read(): Promise<void> {
    try {
      const init = { headers, redirect: "manual", signal: AbortSignal.timeout(deadlineMs) } as const;
      const answer = await (guarded?.(url, init) ?? fetch(url, init));
      const list = List.parse(JSON.parse(await readBoundedText(answer, OUTGOING.modelList.answerBytes)));
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      known = new Map(list.data.slice(0, MAX_MODELS).flatMap(sizeOf));
      dueMs = now() + FRESH_MS;
    } catch {
      // What was known stays. A server without such a list is no fault: its models count as of the usual size.
      dueMs = now() + RETRY_MS;
    }
    reading = null;
  }

  return {
    of(model) {
      if (now() >= dueMs) reading ??= read();
      return known.get(model) ?? null;
    },
    settled: () => reading ?? Promise.resolve(),
  };
}

function sizeOf(entry: unknown): [string, number][] {
  const { success, data } = Model.safeParse(entry);
  const size = success ? (data.max_model_len ?? data.context_length ?? data.meta?.n_ctx) : undefined;
  return success && size !== undefined ? [[data.id, size]] : [];
}
