import {
  isSeveral,
  type MessagePart,
  type ModelMessage,
  type ToolCall,
  type ToolDescription,
} from "../models/engine.ts";
import type { CALL_TOOL as NAME } from "../tools/tool.ts";
import { canonical, inputAsJson, inputAsText } from "./call-input.ts";

/** Its type alone is imported: the worker has no code of tools. */
const CALL_TOOL: typeof NAME = "call_tool";

/**
 * A call as it is judged, shown, approved and executed: one by `call_tool` is a call of the tool that it names. What names
 * no tool stays as it is, and goes back to the model as an invalid call.
 */
export function namedCall({ id, name, input }: ToolCall): ToolCall {
  if (name === CALL_TOOL) {
    const asked = inputAsJson(input);
    if (typeof asked === "object" && asked !== null && "name" in asked && typeof asked.name === "string") {
      const inner = "input" in asked ? asked.input : {};
      return { id, name: asked.name, input: canonical(inputAsText(inner)) };
    }
  }
  return { id, name, input: canonical(input) };
}

/**
 * The messages with each call as its model made it, or would have: a tool that was not offered was called by `call_tool`.
 */
export function messagesAsMade(
  messages: readonly ModelMessage[],
  offered: readonly ToolDescription[],
): readonly ModelMessage[] {
  if (!offered.some(({ name }) => name === CALL_TOOL)) return messages;
  const names = new Set(offered.map(({ name }) => name));
  const asMade = ({ id, name, input }: ToolCall): ToolCall =>
    names.has(name)
      ? { id, name, input }
      : { id, name: CALL_TOOL, input: JSON.stringify({ name, input: inputAsJson(input) }) };
  return messages.map((message) =>
    message.role === "assistant" && message.toolCalls
      ? { ...message, toolCalls: message.toolCalls.map(asMade) }
      : message,
  );
}

/** By the messages as they are kept. */
const asMadeFor = new WeakMap<readonly ModelMessage[], { offered: string; messages: readonly ModelMessage[] }>();

/** The same for messages that are the same objects in every request: so are those that are returned. */
export function lastingAsMade(offered: readonly ToolDescription[]): (part: MessagePart) => MessagePart {
  if (!offered.some(({ name }) => name === CALL_TOOL)) return (part) => part;
  const names = offered.map(({ name }) => name).join(" ");
  return (part) => {
    // A call is never alone: what it returned follows.
    if (!isSeveral(part)) return part;
    const known = asMadeFor.get(part);
    if (known?.offered === names) return known.messages;
    const messages = messagesAsMade(part, offered);
    asMadeFor.set(part, { offered: names, messages });
    return messages;
  };
}
