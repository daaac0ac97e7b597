import type { ToolCall } from "../models/engine.ts";
import type { ToolResult } from "../tools/tool.ts";
import type { JournalStep, LoopEvent } from "./protocol.ts";
import type { Transcript } from "./transcript.ts";

/** How many calls of a step run at the same time, if they may. */
export const MAX_CALLS_AT_ONCE = 8;

/** How a step's calls are made. */
export interface CallParts {
  /** `"waits"`: the call has no result until somebody decides, and its run parks. */
  callTool(call: ToolCall, signal: AbortSignal): Promise<ToolResult | "waits">;
  /** Whether these calls may run at the same time, because none of them changes anything. */
  mayRunTogether(calls: ToolCall[], signal: AbortSignal): Promise<boolean>;
  /** Cancels the run. */
  signal: AbortSignal;
}

/**
 * Makes the calls of a step that have no result yet: at the same time if none of them changes anything, else one after
 * the other. `tool.started` comes before a call and `tool.completed` after it, so that a crash in between is
 * recognised. Returns whether one of them waits; if they are made one after the other, the calls after it are then not
 * made.
 */
export async function* makeCalls(
  step: number,
  { text, calls }: JournalStep,
  { callTool, mayRunTogether, signal }: CallParts,
  transcript: Transcript,
): AsyncGenerator<LoopEvent, boolean> {
  transcript.addAnswer(text, calls);
  const results = createResults(calls, transcript);
  const missing = calls.filter(({ result }) => result === null);
  const asked = missing.map(({ id, name, input }) => ({ id, name, input }));
  const atOnce = asked.length > 1 && (await mayRunTogether(asked, signal)) ? MAX_CALLS_AT_ONCE : 1;
  // Listed once, with the first call of the step.
  const isNew = calls.every(({ result, goAhead }) => result === null && goAhead === undefined);
  let following = isNew ? asked.slice(1) : [];
  let waits = false;
  for (let at = 0; at < asked.length && !(waits && atOnce === 1); at += atOnce) {
    signal.throwIfAborted();
    const group = asked.slice(at, at + atOnce);
    for (const { id, name, input } of group) {
      yield { type: "tool.started", step, toolCallId: id, name, input, following };
      following = [];
    }
    const running = new Map(
      group.map((call, place) => [place, callTool(call, signal).then((reply) => ({ place, call, reply }))]),
    );
    while (running.size > 0) {
      const { place, call, reply } = await Promise.race(running.values());
      running.delete(place);
      if (reply === "waits") {
        waits = true;
        continue;
      }
      const { output, isError } = reply;
      yield { type: "tool.completed", toolCallId: call.id, name: call.name, output, isError };
      results.set(missing[at + place], reply);
    }
    results.addReady();
  }
  return waits;
}

/** Adds results to the transcript in the order of their calls, whichever came first. */
function createResults(calls: JournalStep["calls"], transcript: Transcript) {
  const results = new Map(calls.map((call) => [call, call.result]));
  const left = [...calls];
  const addReady = () => {
    for (let [call] = left; call; [call] = left) {
      const result = results.get(call);
      if (!result) return;
      left.shift();
      transcript.addResult(call, result);
    }
  };
  addReady();
  return {
    addReady,
    set: (call: JournalStep["calls"][number] | undefined, result: ToolResult) =>
      void (call && results.set(call, result)),
  };
}
