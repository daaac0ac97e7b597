import type { ModelAnswer, TracedMessage } from "./traces.ts";

/** The longest content of an attribute, and of one part in it, in characters. */
const MAX_CONTENT = 16_384;
const MAX_PART = 4_096;
const MAX_PARTS = 8;

/** Takes out what must not be shown. A text is cut only after it: a part of a secret would not be found. */
export type Hide = (text: string) => Promise<string>;

/** The most recent messages that fit, in the form of the conventions; what is left out is not told. */
export async function inputMessages(messages: readonly TracedMessage[], hide: Hide): Promise<string> {
  const shown: string[] = [];
  let length = 2;
  for (const message of messages.toReversed()) {
    if (message.role === "system") continue;
    const written = JSON.stringify({ role: message.role, parts: await partsOf(message, hide) });
    if (length + written.length + 1 > MAX_CONTENT) break;
    length += written.length + 1;
    shown.unshift(written);
  }
  return `[${shown.join(",")}]`;
}

export async function systemInstructions(messages: readonly TracedMessage[], hide: Hide): Promise<string> {
  const shown = messages.filter(({ role }) => role === "system").slice(0, MAX_PARTS);
  return JSON.stringify(await Promise.all(shown.map(({ content }) => textPart(content, hide))));
}

export async function outputMessages({ text, toolCalls, finish }: ModelAnswer, hide: Hide): Promise<string> {
  const parts = await partsOf({ role: "assistant", content: text, toolCalls }, hide);
  return JSON.stringify([{ role: "assistant", parts, finish_reason: finish ?? "error" }]);
}

export const cut = (text: string, most = MAX_PART): string =>
  text.length <= most ? text : `${text.slice(0, most).toWellFormed()}…`;

const textPart = async (content: string, hide: Hide) => ({ type: "text", content: cut(await hide(content)) });

async function partsOf(
  { role, content, toolCalls = [], toolCallId }: TracedMessage,
  hide: Hide,
): Promise<readonly object[]> {
  if (role === "tool") return [{ type: "tool_call_response", id: toolCallId, response: cut(await hide(content)) }];
  const calls = toolCalls
    .slice(0, MAX_PARTS)
    .map(async ({ id, name, input }) => ({ type: "tool_call", id, name, arguments: cut(await hide(input)) }));
  return Promise.all(content === "" ? calls : [textPart(content, hide), ...calls]);
}
