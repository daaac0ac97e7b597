import type { ToolCall } from "../models/engine.ts";
import type { ToolResult } from "../tools/tool.ts";
import type { JournalStep, LoopEvent } from "./protocol.ts";
import type { Transcript } from "./transcript.ts";

/** How many calls of a step run at the same time, where they may. */
export const MAX_AT_ONCE = 8;

/** What a step's calls reach the world through. */
export interface CallParts {
  callTool(call: ToolCall, signal: AbortSignal): Promise<ToolResult>;
  /** Whether these calls may run at the same time, since none of them changes anything. */
  mayRunTogether(calls: ToolCall[], signal: AbortSignal): Promise<boolean>;
  /** Cancels the run. */
  signal: AbortSignal;
}

/**
 * Makes the calls of a step that have no result yet: at the same time where none of them changes anything, else one after
 * the other. Started is told before a call is made and completed after it, so that a crash between the two is known as
 * such. The model is told of the results in the order of their calls, whichever was done first.
 */
export async function* makeCalls(
  step: number,
  { text, calls }: JournalStep,
  { callTool, mayRunTogether, signal }: CallParts,
  transcript: Transcript,
): AsyncGenerator<LoopEvent> {
  transcript.addAnswer(text, calls);
  for (const call of calls) if (call.result !== null) transcript.addResult(call, call.result);
  const missing = calls.filter(({ result }) => result === null).map(({ id, name, input }) => ({ id, name, input }));
  const atOnce = missing.length > 1 && (await mayRunTogether(missing, signal)) ? MAX_AT_ONCE : 1;
  // Told once, with the first call of the step.
  let following = missing.length === calls.length ? missing.slice(1) : [];
  for (let at = 0; at < missing.length; at += atOnce) {
    signal.throwIfAborted();
    const group = missing.slice(at, at + atOnce);
    for (const { id, name, input } of group) {
      yield { type: "tool.started", step, toolCallId: id, name, input, following };
      following = [];
    }
    const made = group.map((call) => ({ call, result: callTool(call, signal) }));
    const running = new Map(made.map(({ call, result }) => [call, result.then((value) => ({ call, ...value }))]));
    while (running.size > 0) {
      const { call, output, isError } = await Promise.race(running.values());
      running.delete(call);
      yield { type: "tool.completed", toolCallId: call.id, name: call.name, output, isError };
    }
    for (const { call, result } of made) transcript.addResult(call, await result);
  }
}
