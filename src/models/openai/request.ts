import { isObject } from "../../lib/is-object.ts";
import { isTooDeep } from "../../lib/json-depth.ts";
import {
  isSeveral,
  type MessagePart,
  type ModelMessage,
  type ModelRequest,
  messagesIn,
  type OutputForm,
  type ToolDescription,
} from "../engine.ts";

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
  /** Whether everybody's requests may have it: not if it was learnt from words of one prompt, or of one answer's form. */
  isForAll: boolean;
}

export const STANDARD_DIALECT: Dialect = {
  usageInStream: true,
  temperature: true,
  tokenLimit: "max_tokens",
  outputForm: "json_schema",
  answerTokens: Number.POSITIVE_INFINITY,
  isForAll: true,
};

/**
 * What one call may learn: five things, of which the form of an answer has two steps. A server that asks for one token less
 * each time would be asked thousands of times.
 */
export const MAX_LEARNT = 6;
/**
 * A server that reserves the whole answer (vLLM) refuses one that does not fit its context: reserve a quarter of it.
 */
const ANSWER_SHARE = 4;
const ANSWER_LIMIT = /at most (\d+) completion tokens/i;
const CONTEXT_LIMIT = /maximum context length is (\d+) tokens/i;
/** What only a server says; a tool may have a parameter of that name. */
const OTHER_TOKEN_LIMIT = /\buse ["'`]?max_completion_tokens/i;
/** In one text: no quote, bracket or escape in between, at which a text of the prompt may end and the next begin. */
const NO_TEMPERATURE = /temperature["'`]?[^"'`[\]{}\\\p{C}]{0,40}(not support|unsupported)/iu;

/** Matches a pattern against a server's error text. */
type Find = (pattern: RegExp) => RegExpExecArray | null;

/**
 * The dialect that a 400 asks for, or null if the refusal is about something else. What the server says in its own words
 * is for everybody's requests; what it may only repeat from `prompt` is tried with this one alone.
 */
export function learnDialect(
  dialect: Dialect,
  refusal: string,
  request: Pick<ModelRequest, "output"> & { maxTokens: number },
  prompt: readonly string[],
): Dialect | null {
  const said = wordsOf(refusal);
  const find: Find = (pattern) => pattern.exec(said);
  const findOwn: Find = (pattern) => {
    const found = find(pattern);
    return found && !prompt.some((text) => text.includes(found[0])) ? found : null;
  };
  const learnt = learnFrom(findOwn, dialect, request);
  if (learnt !== null) return learnt;
  if (request.output && dialect.outputForm !== "none" && find(/response_format|json_schema|json_object|grammar/i)) {
    const outputForm = dialect.outputForm === "json_schema" ? "json_object" : "none";
    return { ...dialect, outputForm, isForAll: false };
  }
  const guessed = learnFrom(find, dialect, request);
  return guessed && { ...guessed, isForAll: false };
}

function learnFrom(find: Find, dialect: Dialect, { maxTokens }: { maxTokens: number }): Dialect | null {
  if (dialect.usageInStream && find(/stream_options/)) return { ...dialect, usageInStream: false };
  if (dialect.tokenLimit === "max_tokens" && (find(OTHER_TOKEN_LIMIT) ?? find(/max_completion_tokens/))) {
    return { ...dialect, tokenLimit: "max_completion_tokens" };
  }
  if (dialect.temperature && find(NO_TEMPERATURE)) return { ...dialect, temperature: false };
  const answerTokens = findAnswerLimit(find);
  if (answerTokens === null || answerTokens >= Math.min(maxTokens, dialect.answerTokens)) return null;
  return { ...dialect, answerTokens };
}

function findAnswerLimit(find: Find): number | null {
  const answer = Number(find(ANSWER_LIMIT)?.[1]);
  if (answer > 0) return answer;
  const both = find(CONTEXT_LIMIT);
  // That it is about the answer may be said in any words: the number is what must be the server's.
  if (both === null || !/in the completion|max_(completion_)?tokens/.test(both.input)) return null;
  return Number(both[1]) > 0 ? Math.max(1, Math.floor(Number(both[1]) / ANSWER_SHARE)) : null;
}

/** The texts of a refusal, without JSON's escapes, a line each; what is not JSON as it is. */
function wordsOf(refusal: string): string {
  try {
    if (!isTooDeep(refusal)) return stringsIn(JSON.parse(refusal)).join("\n");
  } catch {}
  return refusal;
}

/** What a tenant may have written in a request, piece by piece: nothing is copied. */
export const textsOf = ({ messages, tools, stop, output }: ModelRequest): string[] =>
  stringsIn([messagesIn(messages).map((message) => ({ ...message, images: undefined })), tools, stop, output]);

/** All strings, with the names of fields. */
function stringsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.flatMap(stringsIn);
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => [name, ...stringsIn(inner)]);
}

/** The body of a chat completion request, streaming. */
export function writeRequest(request: ModelRequest & { maxTokens: number }, model: string, dialect: Dialect): string {
  const options = JSON.stringify({
    stream: true,
    stream_options: dialect.usageInStream ? { include_usage: true } : undefined,
    [dialect.tokenLimit]: Math.min(request.maxTokens, dialect.answerTokens),
    temperature: dialect.temperature ? request.temperature : undefined,
    stop: request.stop?.length ? request.stop : undefined,
    response_format: request.output && writeOutputForm(request.output, dialect.outputForm),
  });
  const tools = request.tools.length === 0 ? "" : `,"tools":[${request.tools.map(writeTool).join(",")}]`;
  // In one `join`, so that a long conversation is copied once.
  const pieces = [`{"model":${JSON.stringify(model)},"messages":[`];
  for (const [at, part] of request.messages.entries()) pieces.push(at === 0 ? "" : ",", writePart(part));
  pieces.push("],", options.slice(1, -1), tools, "}");
  return pieces.join("");
}

/** Of the older part of a conversation: it is only written once. */
const writtenParts = new WeakMap<readonly ModelMessage[], string>();

/** As JSON, without the brackets around an array. */
function writePart(part: MessagePart): string {
  if (!isSeveral(part)) return JSON.stringify(writeMessage(part));
  const known = writtenParts.get(part);
  if (known !== undefined) return known;
  const written = part.map(writePart).join(",");
  writtenParts.set(part, written);
  return written;
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
