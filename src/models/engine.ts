/**
 * A language model: a function from a request to a stream of events. Two engines implement it (`local`, `openai`);
 * tests drive the agent loop with a scripted one.
 */
export interface ToolCall {
  id: string;
  name: string;
  /** The arguments as the model wrote them: JSON text, not yet checked. */
  input: string;
}

export type ModelMessage =
  | { role: "system"; content: string }
  /** `images` are data URLs, for a model that sees. */
  | { role: "user"; content: string; images?: string[] }
  | { role: "assistant"; content: string; toolCalls?: ToolCall[] }
  | { role: "tool"; toolCallId: string; content: string; isError?: true };

/** JSON that fits a schema. */
export interface OutputForm {
  name: string;
  /** Whether a server is to enforce its own strict subset of JSON Schema. */
  strict?: boolean;
  schema: Record<string, unknown>;
}

export interface ToolDescription {
  name: string;
  description: string;
  /** JSON Schema of the input object. */
  inputSchema: Record<string, unknown>;
}

/** A message; or several, as an array that is the same object in later requests, so that what is made of it can be kept. */
export type MessagePart = ModelMessage | readonly ModelMessage[];

/** For the compiler, which does not know a read-only array by `Array.isArray`. */
export const isSeveral = (part: MessagePart): part is readonly ModelMessage[] => Array.isArray(part);

export const messagesIn = (parts: readonly MessagePart[]): readonly ModelMessage[] => parts.flat();

/** The server that a model is called on, other than this host. */
export interface CalledServer {
  address: string;
  /** Only of the operator's own. */
  port?: number;
}

export interface ModelRequest {
  /** `local:<name>` or `openai:<name>`; the part before the colon picks the engine. */
  model: string;
  messages: readonly MessagePart[];
  tools: readonly ToolDescription[];
  /** The maximum of new tokens; absent for the engine's default. */
  maxTokens?: number;
  temperature?: number;
  stop?: string[];
  /** The form that the answer's text must have. An engine may enforce it; whoever asked checks it. */
  output?: OutputForm;
  /** On whose behalf: no account may starve the others, and no instance the other instances of its account. */
  accountId: string;
  instanceId: string;
  /** For the log; absent for what no run asks. */
  runId?: string;
  /** The trace of this call, for the operator's own server. */
  traceparent?: string | undefined;
  /** Called when the request goes to the model: one that is cancelled before, in a queue, has taken nothing. */
  onSent?: ((server?: CalledServer) => void) | undefined;
  /** Called for each try that the server refused, or that did not reach it, if the engine tries again. */
  onRefused?: (() => void) | undefined;
}

export type FinishReason = "stop" | "length" | "tool_calls";

export type ModelEvent =
  | { type: "text"; text: string }
  | { type: "tool_call"; call: ToolCall }
  | ({ type: "usage" } & UsageOfCall)
  /** `model` is what the server calls the model that has answered. */
  | { type: "finish"; reason: FinishReason; model?: string };

/** What one call has taken. */
export interface UsageOfCall {
  promptTokens: number;
  completionTokens: number;
  /** Those of the prompt that came from a cache, if the engine knows. */
  cachedTokens?: number;
  /** Not from the engine: millionths of a US dollar, or null where no price is known. */
  cost?: number | null;
}

export interface ModelAbilities {
  /** Tokens of prompt and answer together. */
  contextTokens: number;
  /** Whether the model can call tools: any, none, or only those with these names. It is given no others. */
  tools: boolean | readonly string[];
  /**
   * Which prompt the model can follow: `full` is all of the agent's files, `short` only its owner's own words, since a
   * small model repeats what it reads.
   */
  prompt: "full" | "short";
  /** Whether messages may have images. */
  images?: boolean;
}

export interface ModelEngine {
  /** For an agent of this instance, which may have a server of its own. Never waits: what is not known yet is assumed. */
  abilities(model: string, instanceId?: string): ModelAbilities;
  /** The maximum of new tokens that the engine lets a request have. */
  answerTokens(request: Pick<ModelRequest, "model" | "maxTokens" | "output">): number;
  /**
   * Yields the answer in batches of events that arrived together, so that a fast stream costs one turn per batch, not
   * per token. Ends after `finish`. Throws `ModelError`, or the signal's reason when it is aborted.
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent[]>;
}

/**
 * `unavailable`: the server could not be reached, is busy (408, 429) or failed (5xx); `silent` and `broken`: it had
 * accepted the request. `budget_exceeded` and `forbidden`: the request was never made, because of a limit.
 */
export type ModelErrorKind =
  | "unavailable"
  | "unknown_model"
  | "rejected"
  | "context_overflow"
  | "silent"
  | "broken"
  | "budget_exceeded"
  | "forbidden";

export interface ModelErrorOptions {
  detail?: string;
  cause?: unknown;
  overflow?: { promptTokens: number; limitTokens: number };
  retryAt?: number;
}

/**
 * A model's failure. Its `message` may be shown to any tenant and says what to do; its `detail` is only for the
 * operator's log.
 */
export class ModelError extends Error {
  readonly kind: ModelErrorKind;
  /** What only the operator may see: servers, settings, a provider's error text. */
  readonly detail: string | undefined;
  /** For `context_overflow`: the length of the prompt and the limit, in tokens. */
  readonly overflow: { promptTokens: number; limitTokens: number } | undefined;
  /** For `budget_exceeded`: when the day or month ends, in milliseconds since 1970. */
  readonly retryAt: number | undefined;

  constructor(kind: ModelErrorKind, publicMessage: string, options: ModelErrorOptions = {}) {
    super(publicMessage, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ModelError";
    this.kind = kind;
    this.detail = options.detail;
    this.overflow = options.overflow;
    this.retryAt = options.retryAt;
  }
}
