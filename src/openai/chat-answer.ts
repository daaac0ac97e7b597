import { z } from "zod";
import type { AppError } from "../lib/app-error.ts";
import { newId } from "../lib/id.ts";
import type { Answer } from "./answering.ts";
import { type AnswerWriter, frameOf } from "./stream.ts";

const FINISH_REASONS = ["stop", "length", "tool_calls"] as const;

/** A chat completion, as OpenAI's clients know it. */
export const ChatCompletion = z.lazy(() =>
  z.object({
    id: z.string(),
    object: z.literal("chat.completion"),
    created: z.int().describe("Seconds since 1970"),
    model: z.string(),
    choices: z.array(
      z.object({
        index: z.literal(0),
        message: z.object({
          role: z.literal("assistant"),
          content: z.string().nullable(),
          refusal: z.null(),
          tool_calls: z
            .array(
              z.object({
                id: z.string(),
                type: z.literal("function"),
                function: z.object({ name: z.string(), arguments: z.string().describe("JSON, as the model wrote it") }),
              }),
            )
            .optional(),
        }),
        logprobs: z.null(),
        finish_reason: z.enum(FINISH_REASONS),
      }),
    ),
    usage: z
      .object({
        prompt_tokens: z.int(),
        prompt_tokens_details: z.object({ cached_tokens: z.int() }).optional(),
        completion_tokens: z.int(),
        total_tokens: z.int(),
      })
      .describe("Estimated where the model's server does not count"),
  }),
);

/** What identifies one completion. */
export interface Heading {
  id: string;
  created: number;
  /** The agent's id. */
  model: string;
}

export const newHeading = (model: string, nowMs: number): Heading => ({
  id: newId("call").replace("call_", "chatcmpl-"),
  created: Math.floor(nowMs / 1000),
  model,
});

export function chatCompletion(heading: Heading, answer: Answer): z.output<typeof ChatCompletion> {
  const calls = callsOf(answer);
  const { id, created, model } = heading;
  return {
    id,
    object: "chat.completion",
    created,
    model,
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: answer.text === "" && calls.length > 0 ? null : answer.text,
          refusal: null,
          ...(calls.length > 0 && { tool_calls: calls }),
        },
        logprobs: null,
        finish_reason: answer.finish,
      },
    ],
    usage: usageOf(answer),
  };
}

const callsOf = ({ calls }: Answer) =>
  calls.map(({ id, name, input }) => ({ id, type: "function" as const, function: { name, arguments: input } }));

const usageOf = ({ usage }: Answer): z.output<typeof ChatCompletion>["usage"] => ({
  prompt_tokens: usage.promptTokens,
  ...(usage.cachedTokens && { prompt_tokens_details: { cached_tokens: usage.cachedTokens } }),
  completion_tokens: usage.completionTokens,
  total_tokens: usage.promptTokens + usage.completionTokens,
});

/** The same as chunks. */
export function chatChunks(
  { id, created, model }: Heading,
  withUsage: boolean,
  shown: (error: AppError) => unknown,
): AnswerWriter {
  const chunk = (choices: unknown[], usage: unknown = null) =>
    frameOf({ id, object: "chat.completion.chunk", created, model, choices, ...(withUsage && { usage }) });
  const choice = (delta: object, finish: Answer["finish"] | null = null) =>
    chunk([{ index: 0, delta, logprobs: null, finish_reason: finish }]);
  return {
    begin: () => choice({ role: "assistant", content: "", refusal: null }),
    text: (piece) => choice({ content: piece }),
    end(answer) {
      const calls = callsOf(answer).map((call, index) => choice({ tool_calls: [{ index, ...call }] }));
      const usage = withUsage ? [chunk([], usageOf(answer))] : [];
      return [...calls, choice({}, answer.finish), ...usage, DONE].join("");
    },
    fail: (error) => frameOf({ error: shown(error) }),
  };
}

const DONE = "data: [DONE]\n\n";
