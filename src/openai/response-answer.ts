import { z } from "zod";
import type { AppError } from "../lib/app-error.ts";
import { record } from "../lib/record.ts";
import type { Answer } from "./answering.ts";
import { callItemId, hasMessage, messageItemId } from "./item-references.ts";
import type { ResponseRequest } from "./response-input.ts";
import { type AnswerWriter, frameOf } from "./stream.ts";

const STATUSES = ["in_progress", "completed", "incomplete", "failed"] as const;
type Status = (typeof STATUSES)[number];

const OutputText = z.lazy(() =>
  z.object({
    type: z.literal("output_text"),
    text: z.string(),
    annotations: z.array(z.never()),
    logprobs: z.array(z.never()),
  }),
);
const OutputItem = z.lazy(() =>
  z.union([
    z.object({
      id: z.string(),
      type: z.literal("message"),
      role: z.literal("assistant"),
      status: z.enum(STATUSES),
      content: z.array(OutputText),
    }),
    z.object({
      id: z.string(),
      type: z.literal("function_call"),
      status: z.enum(STATUSES),
      call_id: z.string(),
      name: z.string(),
      arguments: z.string(),
    }),
  ]),
);
type OutputItem = z.output<typeof OutputItem>;

/** A response, as OpenAI's clients know it. */
export const ResponseRecord = record("AgentResponse", () =>
  z.object({
    id: z.string(),
    object: z.literal("response"),
    created_at: z.int().describe("Seconds since 1970"),
    status: z.enum(STATUSES),
    background: z.literal(false),
    error: z.object({ code: z.string(), message: z.string() }).nullable(),
    incomplete_details: z.object({ reason: z.literal("max_output_tokens") }).nullable(),
    instructions: z.string().nullable(),
    max_output_tokens: z.int().nullable(),
    model: z.string(),
    output: z.array(OutputItem),
    parallel_tool_calls: z.boolean(),
    previous_response_id: z.string().nullable(),
    store: z.boolean(),
    temperature: z.number().nullable(),
    text: z.object({ format: z.looseObject({ type: z.string() }) }),
    tool_choice: z.union([z.string(), z.looseObject({ type: z.enum(["function", "allowed_tools"]) })]),
    tools: z.array(z.looseObject({ type: z.literal("function"), name: z.string() })),
    top_p: z.null(),
    truncation: z.literal("auto"),
    metadata: z.record(z.string(), z.string()),
    usage: z
      .object({
        input_tokens: z.int(),
        input_tokens_details: z.object({ cached_tokens: z.int() }),
        output_tokens: z.int(),
        output_tokens_details: z.object({ reasoning_tokens: z.int() }),
        total_tokens: z.int(),
      })
      .nullable()
      .describe("Null while there is no answer; estimated where the model's server does not count"),
  }),
);
type ResponseRecord = z.output<typeof ResponseRecord>;

/** A response that has not been answered yet: what it shows besides its answer, and the ids of its parts. */
export interface OpenResponse {
  id: string;
  messageId: string;
  /** With this change. */
  show(status: Status, change?: Partial<ResponseRecord>): ResponseRecord;
}

/** `id` is the response's. */
export function openResponse(id: string, request: Omit<ResponseRequest, "input">, nowMs: number): OpenResponse {
  const shared = {
    id,
    object: "response",
    created_at: Math.floor(nowMs / 1000),
    background: false,
    error: null,
    incomplete_details: null,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    model: request.model,
    output: [],
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: request.previous_response_id ?? null,
    store: request.store ?? true,
    temperature: request.temperature ?? null,
    text: { format: request.text?.format ?? { type: "text" } },
    tool_choice: request.tool_choice ?? "auto",
    tools: request.tools ?? [],
    top_p: null,
    truncation: "auto",
    metadata: request.metadata ?? {},
    usage: null,
  } satisfies Omit<ResponseRecord, "status">;
  return { id, messageId: messageItemId(id), show: (status, change) => ({ ...shared, status, ...change }) };
}

const textPart = (text: string): z.output<typeof OutputText> => ({
  type: "output_text",
  text,
  annotations: [],
  logprobs: [],
});

const messageItem = (id: string, status: Status, content: string[]): OutputItem => ({
  id,
  type: "message",
  role: "assistant",
  status,
  content: content.map(textPart),
});

/** What a response shows of an answer. */
export type ShownAnswer = Pick<Answer, "text" | "calls" | "finish"> & { usage: Omit<Answer["usage"], "cost"> };

/** The response with its whole answer. */
export function answeredResponse(open: OpenResponse, answer: ShownAnswer): ResponseRecord {
  const status = answer.finish === "length" ? "incomplete" : "completed";
  // What was cut is the last.
  const statusOf = (call: number): Status => (call === answer.calls.length - 1 ? status : "completed");
  const calls = answer.calls.map(
    ({ id, name, input }, at): OutputItem => ({
      id: callItemId(open.id, at),
      type: "function_call",
      status: statusOf(at),
      call_id: id,
      name,
      arguments: input,
    }),
  );
  return open.show(status, {
    incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
    output: [...(hasMessage(answer) ? [messageItem(open.messageId, statusOf(-1), [answer.text])] : []), ...calls],
    usage: usageOf(answer),
  });
}

const usageOf = ({ usage }: ShownAnswer): ResponseRecord["usage"] => ({
  input_tokens: usage.promptTokens,
  input_tokens_details: { cached_tokens: usage.cachedTokens ?? 0 },
  output_tokens: usage.completionTokens,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: usage.promptTokens + usage.completionTokens,
});

/** The same as events. */
export function responseEvents(open: OpenResponse): AnswerWriter {
  let sequence = 0;
  let shown = "";
  let isMessageOpen = false;
  const event = (type: string, data: object) => frameOf({ type, sequence_number: sequence++, ...data }, type);
  const at = { item_id: open.messageId, output_index: 0, content_index: 0 };

  function openMessage(): string {
    if (isMessageOpen) return "";
    isMessageOpen = true;
    return (
      event("response.output_item.added", { output_index: 0, item: messageItem(open.messageId, "in_progress", []) }) +
      event("response.content_part.added", { ...at, part: textPart("") })
    );
  }

  function endOf(item: OutputItem, index: number): string {
    const done = event.bind(null, "response.output_item.done", { output_index: index, item });
    if (item.type === "message") {
      const [part = textPart("")] = item.content;
      return (
        openMessage() +
        event("response.output_text.done", { ...at, text: part.text, logprobs: [] }) +
        event("response.content_part.done", { ...at, part }) +
        done()
      );
    }
    const call = { item_id: item.id, output_index: index };
    return (
      event("response.output_item.added", {
        output_index: index,
        item: { ...item, status: "in_progress", arguments: "" },
      }) +
      event("response.function_call_arguments.delta", { ...call, delta: item.arguments }) +
      event("response.function_call_arguments.done", { ...call, name: item.name, arguments: item.arguments }) +
      done()
    );
  }

  return {
    begin: () =>
      event("response.created", { response: open.show("in_progress") }) +
      event("response.in_progress", { response: open.show("in_progress") }),
    text(piece) {
      shown += piece;
      return openMessage() + event("response.output_text.delta", { ...at, delta: piece, logprobs: [] });
    },
    end(answer) {
      const response = answeredResponse(open, answer);
      return (
        response.output.map(endOf).join("") +
        event(response.status === "incomplete" ? "response.incomplete" : "response.completed", { response })
      );
    },
    fail({ message }: AppError) {
      const output = isMessageOpen ? [messageItem(open.messageId, "incomplete", [shown])] : [];
      const error = { code: "server_error", message };
      return event("response.failed", { response: open.show("failed", { error, output }) });
    },
  };
}
