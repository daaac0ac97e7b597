import type { ModelMessage, ModelRequest } from "../engine.ts";

/** What a server turned out not to take; learnt from its refusals, so that the next request is right at once. */
export interface Dialect {
  usageInStream: boolean;
  temperature: boolean;
  tokenLimit: "max_tokens" | "max_completion_tokens";
}

export const STANDARD_DIALECT: Dialect = { usageInStream: true, temperature: true, tokenLimit: "max_tokens" };

/** The dialect that a 400 asks for, or null where the refusal is about something else. */
export function learnDialect(dialect: Dialect, refusal: string): Dialect | null {
  if (dialect.usageInStream && refusal.includes("stream_options")) return { ...dialect, usageInStream: false };
  if (dialect.tokenLimit === "max_tokens" && refusal.includes("max_completion_tokens")) {
    return { ...dialect, tokenLimit: "max_completion_tokens" };
  }
  if (dialect.temperature && /temperature.{0,40}(not support|unsupported)/i.test(refusal)) {
    return { ...dialect, temperature: false };
  }
  return null;
}

/** The body of a chat completion request, streaming. */
export function writeRequest(request: ModelRequest, model: string, dialect: Dialect): string {
  return JSON.stringify({
    model,
    messages: request.messages.map(writeMessage),
    stream: true,
    stream_options: dialect.usageInStream ? { include_usage: true } : undefined,
    tools:
      request.tools.length === 0
        ? undefined
        : request.tools.map(({ name, description, inputSchema }) => ({
            type: "function",
            function: { name, description, parameters: inputSchema },
          })),
    [dialect.tokenLimit]: request.maxTokens,
    temperature: dialect.temperature ? request.temperature : undefined,
    stop: request.stop?.length ? request.stop : undefined,
  });
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
    default:
      return { role: message.role, content: message.content };
  }
}

/** vLLM and llama.cpp parse the history's arguments and refuse the whole request over one call that is not JSON. */
function writeArguments(input: string): string {
  try {
    JSON.parse(input);
    return input;
  } catch {
    return JSON.stringify({ invalid: input });
  }
}
