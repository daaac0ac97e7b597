import { isTooDeep } from "../../lib/json-depth.ts";
import type { ModelMessage, ModelRequest, OutputForm, ToolDescription } from "../engine.ts";

/** What a server does not support, learnt from its refusals, so that the next request is accepted at once. */
export interface Dialect {
  usageInStream: boolean;
  temperature: boolean;
  tokenLimit: "max_tokens" | "max_completion_tokens";
  /**
   * How much of a structured answer's form the server is told; it is checked in any case. Learnt for one request only: a
   * server may refuse one schema and take the next.
   */
  outputForm: "json_schema" | "json_object" | "none";
  /** The longest answer that the model allows, if the server has refused a longer one. */
  answerTokens: number;
}

export const STANDARD_DIALECT: Dialect = {
  usageInStream: true,
  temperature: true,
  tokenLimit: "max_tokens",
  outputForm: "json_schema",
  answerTokens: Number.POSITIVE_INFINITY,
};

/**
 * A server that reserves the whole answer (vLLM) refuses one that does not fit its context: reserve a quarter of it.
 */
const ANSWER_SHARE = 4;
const ANSWER_LIMIT = /at most (\d+) completion tokens/i;
const CONTEXT_LIMIT = /maximum context length is (\d+) tokens/i;

/** Matches a pattern against a server's error text. */
type Find = (pattern: RegExp) => RegExpExecArray | null;

/**
 * The dialect that a 400 asks for, or null if the refusal is about something else. Since the dialect applies to
 * everybody's requests, text that the refusal repeats from `prompt` is ignored, except where it applies to this one only.
 */
export function learnDialect(
  dialect: Dialect,
  refusal: string,
  { maxTokens, output }: Pick<ModelRequest, "output"> & { maxTokens: number },
  prompt: readonly string[],
): Dialect | null {
  const find: Find = (pattern) => {
    const found = pattern.exec(refusal);
    return found && !prompt.some((text) => text.includes(found[0])) ? found : null;
  };
  if (dialect.usageInStream && find(/stream_options/)) return { ...dialect, usageInStream: false };
  if (dialect.tokenLimit === "max_tokens" && find(/max_completion_tokens/)) {
    return { ...dialect, tokenLimit: "max_completion_tokens" };
  }
  if (dialect.temperature && find(/temperature.{0,40}(not support|unsupported)/i)) {
    return { ...dialect, temperature: false };
  }
  if (output && dialect.outputForm !== "none" && /response_format|json_schema|json_object|grammar/i.test(refusal)) {
    return { ...dialect, outputForm: dialect.outputForm === "json_schema" ? "json_object" : "none" };
  }
  const answerTokens = findAnswerLimit(find);
  if (answerTokens !== null && answerTokens < Math.min(maxTokens, dialect.answerTokens)) {
    return { ...dialect, answerTokens };
  }
  return null;
}

function findAnswerLimit(find: Find): number | null {
  const answer = Number(find(ANSWER_LIMIT)?.[1]);
  if (answer > 0) return answer;
  if (!find(/in the completion|max_(completion_)?tokens/)) return null;
  const both = Number(find(CONTEXT_LIMIT)?.[1]);
  return both > 0 ? Math.max(1, Math.floor(both / ANSWER_SHARE)) : null;
}

/** What a tenant may have written in a request, as it is and as JSON: a refusal repeats the one or the other. */
export function textsOf({ messages, tools, stop, output }: ModelRequest): string[] {
  const texts: string[] = [];
  const all = [messages.map((message) => ({ ...message, images: undefined })), tools, stop, output];
  const written = JSON.stringify(all, (_, value) => {
    if (typeof value === "string") texts.push(value);
    return value;
  });
  return [...texts, written];
}

/** The body of a chat completion request, streaming. */
export function writeRequest(request: ModelRequest & { maxTokens: number }, model: string, dialect: Dialect): string {
  const body = JSON.stringify({
    model,
    messages: request.messages.map(writeMessage),
    stream: true,
    stream_options: dialect.usageInStream ? { include_usage: true } : undefined,
    [dialect.tokenLimit]: Math.min(request.maxTokens, dialect.answerTokens),
    temperature: dialect.temperature ? request.temperature : undefined,
    stop: request.stop?.length ? request.stop : undefined,
    response_format: request.output && writeOutputForm(request.output, dialect.outputForm),
  });
  if (request.tools.length === 0) return body;
  return `${body.slice(0, -1)},"tools":[${request.tools.map(writeTool).join(",")}]}`;
}

/** Tools are the same objects in every request, and often most of it: each is written once. */
const writtenTools = new WeakMap<ToolDescription, string>();

function writeTool(tool: ToolDescription): string {
  const known = writtenTools.get(tool);
  if (known !== undefined) return known;
  const { name, description, inputSchema } = tool;
  const written = JSON.stringify({ type: "function", function: { name, description, parameters: inputSchema } });
  writtenTools.set(tool, written);
  return written;
}

function writeOutputForm({ name, schema, strict }: OutputForm, form: Dialect["outputForm"]): unknown {
  switch (form) {
    case "json_schema":
      return { type: "json_schema", json_schema: { name, schema, strict } };
    case "json_object":
      return { type: "json_object" };
    case "none":
      return undefined;
  }
}

function writeMessage(message: ModelMessage): unknown {
  switch (message.role) {
    case "tool":
      return { role: "tool", tool_call_id: message.toolCallId, content: message.content };
    case "assistant":
      if (!message.toolCalls?.length) return { role: "assistant", content: message.content };
      return {
        role: "assistant",
        content: message.content,
        tool_calls: message.toolCalls.map(({ id, name, input }) => ({
          id,
          type: "function",
          function: { name, arguments: writeArguments(input) },
        })),
      };
    case "user":
      return { role: "user", content: message.images?.length ? withImages(message) : message.content };
    case "system":
      return { role: "system", content: message.content };
  }
}

const withImages = ({ content, images = [] }: { content: string; images?: string[] }): unknown[] => [
  ...(content === "" ? [] : [{ type: "text", text: content }]),
  ...images.map((url) => ({ type: "image_url", image_url: { url } })),
];

/** vLLM and llama.cpp parse the history's arguments, and refuse the whole request if one call is not JSON. */
function writeArguments(input: string): string {
  try {
    if (!isTooDeep(input)) {
      JSON.parse(input);
      return input;
    }
  } catch {}
  return JSON.stringify({ invalid: input });
}
