import type { ModelAnswer, TracedMessage } from "./traces.ts";

/** The longest content of an attribute, and of one part in it, in characters. */
const MAX_CONTENT = 16_384;
const MAX_PART = 4_096;
const MAX_PARTS = 8;

/** The most recent messages that fit, in the form of the conventions; what is left out is not told. */
export function inputMessages(messages: readonly TracedMessage[]): string {
  const shown: string[] = [];
  let length = 2;
  for (const message of messages.toReversed()) {
    if (message.role === "system") continue;
    const written = JSON.stringify({ role: message.role, parts: partsOf(message) });
    if (length + written.length + 1 > MAX_CONTENT) break;
    length += written.length + 1;
    shown.unshift(written);
  }
  return `[${shown.join(",")}]`;
}

export const systemInstructions = (messages: readonly TracedMessage[]): string =>
  JSON.stringify(
    messages
      .filter(({ role }) => role === "system")
      .slice(0, MAX_PARTS)
      .map(({ content }) => textPart(content)),
  );

export const outputMessages = ({ text, toolCalls, finish }: ModelAnswer): string =>
  JSON.stringify([
    {
      role: "assistant",
      parts: partsOf({ role: "assistant", content: text, toolCalls }),
      finish_reason: finish ?? "error",
    },
  ]);

export const cut = (text: string, most = MAX_PART): string =>
  text.length <= most ? text : `${text.slice(0, most).toWellFormed()}…`;

const textPart = (content: string) => ({ type: "text", content: cut(content) });

function partsOf({ role, content, toolCalls = [], toolCallId }: TracedMessage): object[] {
  if (role === "tool") return [{ type: "tool_call_response", id: toolCallId, response: cut(content) }];
  const calls = toolCalls
    .slice(0, MAX_PARTS)
    .map(({ id, name, input }) => ({ type: "tool_call", id, name, arguments: cut(input) }));
  return content === "" ? calls : [textPart(content), ...calls];
}
