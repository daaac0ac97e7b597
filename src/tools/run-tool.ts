import { messageOf } from "../lib/message-of.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import { UntrustedError } from "../lib/untrusted.ts";
import type { Tool, ToolContext, ToolResult, Waiting } from "./tool.ts";

/** What a tool said, and whether a stranger may have written it. */
export interface RunResult extends ToolResult {
  isUntrusted: boolean;
}

/** Runs a tool until it is done or waits, its deadline passes or its run is cancelled. Never throws. */
export async function runTool(
  { tool, input }: { tool: Tool; input: unknown },
  context: ToolContext,
): Promise<RunResult | Waiting> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), tool.deadlineMs);
  const signal = AbortSignal.any([context.signal, late.signal]);
  const isUntrusted = tool.untrustedOutput;
  try {
    signal.throwIfAborted();
    // Some tools ignore their signal.
    const answer = await untilAborted(tool.run(input, { ...context, signal }), signal);
    if (typeof answer === "string") return { output: answer, isError: false, isUntrusted };
    if ("untrusted" in answer) return { output: answer.untrusted, isError: false, isUntrusted: true };
    return answer;
  } catch (error) {
    if (late.signal.aborted) return failed(`${tool.name} did not finish within ${tool.deadlineMs / 1000} seconds`);
    // An error may repeat what a stranger said.
    const message = messageOf(error);
    return { ...failed(message), isUntrusted: isUntrusted || error instanceof UntrustedError };
  } finally {
    clearTimeout(timer);
  }
}

const failed = (output: string): RunResult => ({ output, isError: true, isUntrusted: false });
