import type { ModelMessage, ToolCall } from "../models/engine.ts";
import type { ToolResult } from "../tools/tool.ts";

/** The model is warned from the third identical call with an identical result; the fifth ends the run. */
const WARNED_AT = 3;
const ENDED_AT = 5;

/** The agent repeats the same call with the same result. */
export class LoopDetected extends Error {
  constructor(name: string) {
    super(
      `the agent called ${name} ${ENDED_AT} times with the same input and the same result; ask it in other words, or give it a stronger model`,
    );
    this.name = "LoopDetected";
  }
}

/** The model's answers and tool results so far, as the next model call shows them. */
export interface Transcript {
  messages: readonly ModelMessage[];
  addAnswer(text: string, calls: readonly ToolCall[]): void;
  /** Results come in the order of their calls. Throws `LoopDetected`. */
  addResult(call: ToolCall, result: ToolResult): void;
}

export function createTranscript(): Transcript {
  const messages: ModelMessage[] = [];
  const times = new Map<string, number>();
  return {
    messages,
    addAnswer(text, calls) {
      const toolCalls = calls.map(({ id, name, input }) => ({ id, name, input }));
      messages.push({ role: "assistant", content: text, toolCalls });
    },
    addResult({ id, name, input }, { output, isError }) {
      const key = JSON.stringify([name, input, output, isError]);
      const count = (times.get(key) ?? 0) + 1;
      times.set(key, count);
      if (count >= ENDED_AT) throw new LoopDetected(name);
      const content = count < WARNED_AT ? output : output + warning(count);
      messages.push({ role: "tool", toolCallId: id, content, ...(isError ? { isError: true as const } : {}) });
    },
  };
}

const warning = (count: number): string =>
  `\n[You have made this call ${count} times, always with this result. Do something else, or answer with what you know.]`;
