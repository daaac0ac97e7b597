import { z } from "zod";
import { AppError } from "../lib/app-error.ts";
import { createSlots } from "../limits/slots.ts";
import { ModelError } from "../models/engine.ts";
import type { EmbedTexts } from "../models/local/embeddings.ts";
import { createQueue } from "../models/local/queue.ts";
import { EMBEDDING_MODEL } from "./models.ts";

const MAX_TEXTS = 2_048;
/** With numbers as text: writing those of more would hold everybody up, which writing base64 does not. */
const MAX_TEXTS_AS_NUMBERS = 256;
const DIMENSIONS = 384;
const MAX_CHARACTERS = 32_000;
/** Requests of an account that wait, besides the one whose texts are embedded. */
const MAX_WAITING = 8;

const TEXT = `text that is not empty, at most ${MAX_CHARACTERS} characters`;
const INPUT = `text, or a list of 1 to ${MAX_TEXTS} texts, each not empty and of at most ${MAX_CHARACTERS} characters`;
const AS_NUMBERS = `at most ${MAX_TEXTS_AS_NUMBERS} texts, or encoding_format "base64" with them`;

export const EmbeddingRequest = z.lazy(() => {
  const text = z.string({ error: TEXT }).min(1, { error: TEXT }).max(MAX_CHARACTERS, { error: TEXT });
  const request = z.object({
    model: z.string({ error: EMBEDDING_MODEL }).describe(EMBEDDING_MODEL),
    input: z.union([text, z.array(text).min(1, { error: INPUT }).max(MAX_TEXTS, { error: INPUT })], { error: INPUT }),
    encoding_format: z.enum(["float", "base64"], { error: "float or base64" }).nullish(),
    dimensions: z.literal(DIMENSIONS, { error: `${DIMENSIONS}: every vector has as many` }).nullish(),
  });
  return request.refine(
    ({ input, encoding_format: format }) => format === "base64" || [input].flat().length <= MAX_TEXTS_AS_NUMBERS,
    { path: ["input"], error: AS_NUMBERS },
  );
});

export const Embeddings = z.lazy(() =>
  z.object({
    object: z.literal("list"),
    data: z.array(
      z.object({
        object: z.literal("embedding"),
        index: z.int(),
        embedding: z
          .union([z.array(z.number()), z.string()])
          .describe(`${DIMENSIONS} numbers, or as base64 of 32-bit floats`),
      }),
    ),
    model: z.string(),
    usage: z.object({ prompt_tokens: z.int(), total_tokens: z.int() }),
  }),
);

/** Throws `not_found` for another model, `model_error`. */
export type Embed = (
  whose: { accountId: string; requestId: string },
  request: z.output<typeof EmbeddingRequest>,
  signal: AbortSignal,
) => Promise<z.output<typeof Embeddings>>;

/** One request of an account at a time has its texts embedded: the others wait. */
export function createEmbed(embedTexts: EmbedTexts): Embed {
  const queue = createQueue(1);
  const places = createSlots({ total: Number.MAX_SAFE_INTEGER, maxPerOwner: 1 + MAX_WAITING });
  return async ({ accountId, requestId }, { model, input, encoding_format: format }, signal) => {
    if (model !== EMBEDDING_MODEL) {
      throw new AppError("not_found", `model: the embedding model is ${EMBEDDING_MODEL}`, { param: "model" });
    }
    const counts: number[] = [];
    let vectors: Float32Array[];
    if (places.acquire(accountId) !== "taken") {
      throw new AppError("rate_limited", `${MAX_WAITING} requests for embeddings wait already; try again later`, {
        retryAfterSeconds: 5,
      });
    }
    let leave = () => {};
    try {
      leave = await queue.enter(accountId, signal);
      vectors = await embedTexts([input].flat(), signal, { onTokens: (count) => void counts.push(count), requestId });
    } catch (error) {
      throw error instanceof ModelError ? new AppError("model_error", error.message, { cause: error }) : error;
    } finally {
      leave();
      places.release(accountId);
    }
    const tokens = counts.reduce((sum, count) => sum + count, 0);
    return {
      object: "list",
      data: vectors.map((vector, index) => ({ object: "embedding", index, embedding: written(vector, format) })),
      model,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    };
  };
}

const written = (vector: Float32Array, format: "float" | "base64" | null | undefined): number[] | string =>
  format === "base64"
    ? Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString("base64")
    : Array.from(vector);
