/** What a request says about tools, on its way to the model process. */
import { languageOf } from "../../../lib/language.ts";
import { RECALL } from "../../../lib/worked-examples.ts";
import { type ModelMessage, type ModelRequest, messagesIn } from "../../engine.ts";
import type { Deed } from "./deed.ts";
import { deedIn } from "./deeds.ts";
import { QUOTATIONS } from "./given-words.ts";
import type { MadeCall } from "./made-call.ts";
import { isToolName, type ToolName } from "./offered.ts";

export interface ToolUse {
  /** The last message of the user. */
  question: string;
  offered: ToolName[];
  /** Whether the prompt has what the message asks for of what the person has told. */
  isTold: boolean;
  /** The list that the person has named last before that message. */
  listNamed?: string | undefined;
  /** The calls since that message, with their results. */
  made: MadeCall[];
}

/**
 * Undefined if no tool can be used: none that the model knows is offered, the run has called others, or the conversation
 * is in another language than English, which is the only one that the examples and the answers are in.
 */
export function toolUseOf(request: Pick<ModelRequest, "messages" | "tools">): ToolUse | undefined {
  const messages = messagesIn(request.messages);
  const offered = request.tools.map(({ name }) => name).filter(isToolName);
  const { question, made } = askedIn(request.messages);
  if (offered.length === 0 || question === "" || !isEnglish(messages)) return undefined;
  if (!made.every(({ name }) => isToolName(name))) return undefined;
  return { question, offered, isTold: isTold(messages), listNamed: listNamed(messages), made };
}

/** How many messages of the person are looked through for a list. */
const LOOKED_THROUGH = 10;

/** After these, there is no such file any more. */
const GONE: readonly Deed["does"][] = ["delete", "rename"];

function listNamed(messages: readonly ModelMessage[]): string | undefined {
  const earlier = messages.filter(({ role }) => role === "user").slice(-LOOKED_THROUGH - 1, -1);
  for (const { content } of earlier.reverse()) {
    const deed = deedIn(content);
    if (deed === null || !("file" in deed) || GONE.includes(deed.does)) continue;
    if (!("isGuessed" in deed)) return deed.file;
  }
  return undefined;
}

/** The prompt has examples then (runtime/short-prompt.ts). */
const isTold = (messages: readonly ModelMessage[]): boolean =>
  messages.some(({ content }) => content === RECALL.exchanges[0]?.[0]);

/** What a file has, and what a person quotes or gives to be written, may be in any language. */
const isEnglish = (messages: readonly ModelMessage[]): boolean =>
  languageOf(
    messages
      .flatMap(({ role, content }) => (role === "system" ? [content] : role === "user" ? [ownWords(content)] : []))
      .join("\n"),
  ) === "en";
const ownWords = (message: string): string => message.replace(QUOTATIONS, "").replace(/:.*/s, "");

/** The last message of the user, and the calls since. */
export function askedIn(parts: ModelRequest["messages"]): Pick<ToolUse, "question" | "made"> {
  const messages = messagesIn(parts);
  const asked = messages.findLastIndex(({ role }) => role === "user");
  return { question: messages[asked]?.content ?? "", made: madeIn(messages.slice(asked + 1)) };
}

function madeIn(messages: readonly ModelMessage[]): MadeCall[] {
  const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));
  return messages.flatMap((message) => {
    if (message.role !== "tool") return [];
    const call = calls.findLast(({ id }) => id === message.toolCallId);
    const result = { output: message.content, isError: message.isError === true };
    return call === undefined ? [] : [{ name: call.name, input: call.input, ...result }];
  });
}
