/** One answer of a model process, as the events of an engine. */
import { type MessagePart, ModelError, type ModelEvent, messagesIn, type ToolCall } from "../engine.ts";
import { createThoughtFilter } from "../thoughts.ts";
import { createInbox } from "./inbox.ts";
import type { ChatMessage, Generate, ToolRequest } from "./protocol.ts";
import type { Reply, Supervisor } from "./supervisor.ts";
import { inputOf } from "./tools/made-call.ts";

export interface AnswerListener {
  onStarted?(promptTokens: number, cachedTokens: number): void;
  onDone?(completionTokens: number): void;
  /** The error of a request that the process could not handle; `loading` if it could not load the model. */
  failed(reason: string, loading: boolean): ModelError;
  /** For the log. */
  runId?: string | undefined;
}

/** Yields the answer in batches, and ends after `finish`. Throws `ModelError`, or the signal's reason. */
export async function* answerBy(
  supervisor: Pick<Supervisor, "submit" | "cancel">,
  request: Omit<Generate, "type">,
  signal: AbortSignal,
  { onStarted, onDone, failed, runId }: AnswerListener,
): AsyncGenerator<ModelEvent[], void> {
  const inbox = createInbox();
  const thoughts = createThoughtFilter();
  let [promptTokens, cachedTokens] = [0, 0];

  function putText(text: string): void {
    if (text !== "") inbox.put({ type: "text", text });
  }

  function onReply(reply: Reply): void {
    switch (reply.type) {
      case "started":
        ({ promptTokens, cachedTokens } = reply);
        onStarted?.(promptTokens, cachedTokens);
        break;
      case "text":
        putText(thoughts.push(reply.text));
        break;
      case "done":
        onDone?.(reply.completionTokens);
        putText(thoughts.end());
        if (reply.call !== undefined) inbox.put({ type: "tool_call", call: toolCall(reply.call) });
        inbox.put({ type: "usage", promptTokens, cachedTokens, completionTokens: reply.completionTokens });
        if (reply.isCallCut) inbox.fail(callCut(reply.completionTokens));
        else inbox.put({ type: "finish", reason: reply.reason });
        break;
      case "overflow":
        inbox.fail(tooLong(reply.promptTokens, reply.limitTokens));
        break;
      case "failed":
        inbox.fail(failed(reply.message, reply.loading === true));
        break;
      case "embedded":
      case "tried":
        break;
    }
  }

  const onAbort = () => inbox.fail(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    signal.throwIfAborted(); // it may have been aborted while it waited for its turn
    const generate = { type: "generate", ...request } as const;
    supervisor.submit({ request: generate, whose: { runId }, onReply, onFailure: inbox.fail });
    for (;;) {
      const events = await inbox.take();
      signal.throwIfAborted();
      yield events;
      if (events.at(-1)?.type === "finish") return;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    supervisor.cancel(request.id);
  }
}

/** For a model that calls functions by its own template. */
export function withCalls(messages: readonly MessagePart[]): ChatMessage[] {
  const named = new Map<string, string>();
  return messagesIn(messages).map((message): ChatMessage => {
    const { role, content } = message;
    if (message.role === "tool") {
      const { toolCallId: id } = message;
      return { role, content, answers: { id, name: named.get(id) ?? "" } };
    }
    if (message.role !== "assistant" || message.toolCalls === undefined) return { role, content };
    for (const { id, name } of message.toolCalls) named.set(id, name);
    return { role, content, calls: message.toolCalls.map((call) => ({ ...call, input: inputOf(call.input) ?? {} })) };
  });
}

/** For an answer without tools: a call is left out, and its result is passed as a user message. */
export function asChat(messages: readonly MessagePart[]): ChatMessage[] {
  return messagesIn(messages).flatMap((message): ChatMessage[] => {
    if (message.role === "tool") return [{ role: "user", content: `Result of a tool:\n${message.content}` }];
    if (message.role === "assistant" && message.content === "") return [];
    return [{ role: message.role, content: message.content }];
  });
}

/** An estimate, to report how far a prompt is over the limit. */
const CHARACTERS_PER_TOKEN = 4;
/** Far more than a context of so many tokens holds: a longer prompt is refused at once, without queueing. */
const CHARACTERS_OF_A_TOKEN = 32;

/** Throws `ModelError` for a prompt that is far too long for a context. `more` are characters besides the messages. */
export function refuseEndless(messages: readonly ChatMessage[], contextTokens: number, more = 0): void {
  const characters = messages.reduce((sum, { content }) => sum + content.length, more);
  if (characters <= contextTokens * CHARACTERS_OF_A_TOKEN) return;
  throw tooLong(Math.ceil(characters / CHARACTERS_PER_TOKEN), contextTokens);
}

const toolCall = ({ name, input }: ToolRequest): ToolCall => ({
  id: `call_${crypto.randomUUID()}`,
  name,
  input: JSON.stringify(input),
});

/** To go on would be of no use: the next call would be as long. */
const callCut = (tokens: number) =>
  new ModelError(
    "broken",
    `The answer reached its limit of ${tokens} tokens within a call of a tool, so nothing was called. Ask for less at once, or use a model with longer answers.`,
  );

const tooLong = (promptTokens: number, limitTokens: number) =>
  new ModelError(
    "context_overflow",
    `The prompt has ${promptTokens} tokens, the local model takes ${limitTokens}. Shorten it, or use a model with a longer context.`,
    { overflow: { promptTokens, limitTokens } },
  );
