import type { ModelMessage, ToolCall } from "../models/engine.ts";
import type { ToolResult } from "../tools/tool.ts";
import { roomOf } from "./prompt-room.ts";

/** The model is warned from the third identical call with an identical result; the fifth ends the run. */
const WARNED_AT = 3;
const ENDED_AT = 5;
/** Characters of inputs and outputs: each model call takes all of them through the host. */
const MAX_TRANSCRIPT = 200_000;
/** The share that is left when it was more. Not just below it, because a server caches the beginnings of prompts. */
const LEFT_SHARE = 3 / 4;
/** Shorter texts stay as they are. */
const SHORT = 200;

/** The agent repeats the same call with the same result. */
export class LoopDetected extends Error {
  constructor(name: string) {
    super(
      `the agent called ${name} ${ENDED_AT} times with the same input and the same result; ask it in other words, or give it a stronger model`,
    );
    this.name = "LoopDetected";
  }
}

/**
 * The model's answers and tool results so far, as the next model call shows them. If they are too long, the oldest outputs
 * and inputs give way to marks that say so.
 */
export interface Transcript {
  messages: readonly ModelMessage[];
  addAnswer(text: string, calls: readonly ToolCall[]): void;
  /** Results come in the order of their calls. Throws `LoopDetected`. */
  addResult(call: ToolCall, result: ToolResult): void;
  /** An answer that was not shown, and what is wrong with it. */
  addFault(text: string, fault: string): void;
}

/** `contextTokens`: what the model can read; it is not given more than would fill all of that. */
export function createTranscript(contextTokens = Number.POSITIVE_INFINITY): Transcript {
  const most = Math.min(MAX_TRANSCRIPT, roomOf(contextTokens));
  const messages: ModelMessage[] = [];
  /** How often each call was made with each result, by their hashes: texts would keep what was shortened. */
  const times = new Map<string, number>();
  let size = 0;
  /** Messages before this one have been shortened. */
  let shortened = 0;

  function add(message: ModelMessage): void {
    messages.push(message);
    size += sizeOf(message);
    if (size <= most) return;
    for (; size > most * LEFT_SHARE && shortened < messages.length - 1; shortened++) {
      const before = messages[shortened];
      if (before === undefined) return;
      const after = shorten(before);
      size -= sizeOf(before) - sizeOf(after);
      messages[shortened] = after;
    }
  }

  return {
    messages,
    addAnswer(text, calls) {
      add({
        role: "assistant",
        content: text.trimStart(),
        toolCalls: calls.map(({ id, name, input }) => ({ id, name, input })),
      });
    },
    addFault(text, fault) {
      messages.push({ role: "assistant", content: text }, { role: "user", content: repairOf(fault) });
    },
    addResult({ id, name, input }, { output, isError }) {
      const key = `${name} ${Bun.hash(input)} ${isError} ${Bun.hash(output)}`;
      const count = (times.get(key) ?? 0) + 1;
      times.set(key, count);
      if (count >= ENDED_AT) throw new LoopDetected(name);
      const content = count < WARNED_AT ? output : output + warning(count);
      add({ role: "tool", toolCallId: id, content, ...(isError ? { isError: true as const } : {}) });
    },
  };
}

const repairOf = (fault: string): string =>
  `[This answer is not in the form that was asked for: ${fault}. Answer again, with the whole JSON and nothing else.]`;

const warning = (count: number): string =>
  `\n[You have made this call ${count} times, always with this result. Do something else, or answer with what you know.]`;

const callsOf = (message: ModelMessage): ToolCall[] => (message.role === "assistant" && message.toolCalls) || [];

const sizeOf = (message: ModelMessage): number =>
  callsOf(message).reduce((sum, { input }) => sum + input.length, message.content.length);

function shorten(message: ModelMessage): ModelMessage {
  if (message.role === "tool" && message.content.length > SHORT) {
    const { length } = message.content;
    return {
      ...message,
      content: `[This output is left out here, because newer ones need its room: ${length} characters.]`,
    };
  }
  if (message.role !== "assistant") return message;
  const toolCalls = callsOf(message).map((call) =>
    call.input.length > SHORT
      ? { ...call, input: JSON.stringify({ leftOut: `${call.input.length} characters` }) }
      : call,
  );
  return { ...message, toolCalls };
}
