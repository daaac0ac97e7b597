import type { Tool, ToolContext, ToolResult, Waiting } from "./tool.ts";

/** Runs a tool until it is done or waits, its deadline passes or its run is cancelled. Never throws. */
export async function runTool(
  { tool, input }: { tool: Tool; input: unknown },
  context: ToolContext,
): Promise<ToolResult | Waiting> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), tool.deadlineMs);
  const signal = AbortSignal.any([context.signal, late.signal]);
  try {
    signal.throwIfAborted();
    const answer = await untilAborted(tool.run(input, { ...context, signal }), signal);
    return typeof answer === "string" ? { output: answer, isError: false } : answer;
  } catch (error) {
    if (late.signal.aborted) return failed(`${tool.name} did not finish within ${tool.deadlineMs / 1000} seconds`);
    return failed(error instanceof Error ? error.message : String(error));
  } finally {
    clearTimeout(timer);
  }
}

const failed = (output: string): ToolResult => ({ output, isError: true });

/** For a tool that ignores its signal. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const stop = () => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  work.then(resolve, reject);
  return promise.finally(() => signal.removeEventListener("abort", stop));
}
