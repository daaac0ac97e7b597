/**
 * What a language model is to Roost: a function from a request to a stream of events. Two engines implement it
 * (`local`, `openai`); tests drive the agent loop with a scripted one.
 */
export interface ToolCall {
  id: string;
  name: string;
  /** The arguments as the model wrote them: JSON text, not yet checked. */
  input: string;
}

export type ModelMessage =
  | { role: "system" | "user"; content: string }
  | { role: "assistant"; content: string; toolCalls?: ToolCall[] }
  | { role: "tool"; toolCallId: string; content: string };

export interface ToolDescription {
  name: string;
  description: string;
  /** JSON Schema of the input object. */
  inputSchema: Record<string, unknown>;
}

export interface ModelRequest {
  /** `local:<name>` or `openai:<name>`; the part before the colon picks the engine. */
  model: string;
  messages: ModelMessage[];
  tools: ToolDescription[];
  /** Upper bound of new tokens; the engine's default where absent. */
  maxTokens?: number;
  temperature?: number;
  stop?: string[];
  /** Who asks, so that neither one account starves the others, however many instances it has, nor one of these the others. */
  accountId: string;
  instanceId: string;
}

export type FinishReason = "stop" | "length" | "tool_calls";

export type ModelEvent =
  | { type: "text"; text: string }
  | { type: "tool_call"; call: ToolCall }
  | { type: "usage"; promptTokens: number; completionTokens: number }
  | { type: "finish"; reason: FinishReason };

export interface ModelAbilities {
  /** Tokens of prompt and answer together. */
  contextTokens: number;
  /** Whether the engine takes tool descriptions; one that does not gets none. */
  tools: boolean;
  /**
   * Which prompt the model can follow: `full` is all of the agent's files, `short` its owner's own words alone, since a
   * small model says again what it reads.
   */
  prompt: "full" | "short";
}

export interface ModelEngine {
  abilities(model: string): ModelAbilities;
  /**
   * Yields the answer in batches: all events that arrived together, so that a fast stream costs one turn a batch, not
   * one a token. Ends after `finish`. Throws `ModelError`; an aborted `signal` ends it by throwing the signal's reason.
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent[]>;
  close?(): Promise<void>;
}

/**
 * A model's failure, told twice: its `message` may be shown to any tenant and says what one can do, its `detail` is for the
 * operator's log alone.
 */
export class ModelError extends Error {
  readonly kind: "unavailable" | "rejected" | "context_overflow" | "silent" | "broken";
  /** What only the operator may know: servers, settings, a provider's words. Undefined where the message says it all. */
  readonly detail: string | undefined;
  /** Set for `context_overflow`: how long the prompt was and what fits, in tokens. */
  readonly overflow: { promptTokens: number; limitTokens: number } | undefined;

  constructor(
    kind: ModelError["kind"],
    publicMessage: string,
    options: { detail?: string; cause?: unknown; overflow?: { promptTokens: number; limitTokens: number } } = {},
  ) {
    super(publicMessage, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ModelError";
    this.kind = kind;
    this.detail = options.detail;
    this.overflow = options.overflow;
  }
}
