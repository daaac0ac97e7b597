import { z } from "zod";
import type { Clock } from "../lib/clock.ts";
import type { ToolDescription } from "../models/engine.ts";

/** What a tool may use: the world it acts in, and when to give up. */
export interface ToolContext {
  instanceId: string;
  agentId: string;
  clock: Clock;
  /** Aborted by the tool's deadline or the run's cancel. */
  signal: AbortSignal;
}

/** One thing that an agent can do. A file of this folder each. */
export interface Tool<S extends z.ZodType = z.ZodType> {
  name: string;
  description: string;
  input: S;
  deadlineMs: number;
  run(input: z.output<S>, context: ToolContext): Promise<string>;
}

export interface ToolResult {
  output: string;
  isError: boolean;
}

/** As a model is told of it. */
export const describe = ({ name, description, input }: Tool): ToolDescription => ({
  name,
  description,
  inputSchema: z.toJSONSchema(input, { io: "input" }) as Record<string, unknown>,
});

/** Calls a tool by name. Never throws: what goes wrong is told to the model as the tool's error, so that it can mend it. */
export async function callTool(
  tools: readonly Tool[],
  call: { name: string; input: string },
  context: ToolContext,
): Promise<ToolResult> {
  const tool = tools.find(({ name }) => name === call.name);
  if (!tool) return failed(`there is no tool "${call.name}"; there are: ${tools.map(({ name }) => name).join(", ")}`);
  const parsed = parseInput(tool, call.input);
  if ("problem" in parsed) return failed(parsed.problem);
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), tool.deadlineMs);
  const signal = AbortSignal.any([context.signal, late.signal]);
  try {
    return { output: await untilAborted(tool.run(parsed.input, { ...context, signal }), signal), isError: false };
  } catch (error) {
    if (late.signal.aborted) return failed(`${tool.name} did not finish within ${tool.deadlineMs / 1000} seconds`);
    return failed(error instanceof Error ? error.message : String(error));
  } finally {
    clearTimeout(timer);
  }
}

const failed = (output: string): ToolResult => ({ output, isError: true });

function parseInput(tool: Tool, text: string): { input: unknown } | { problem: string } {
  let value: unknown;
  try {
    value = JSON.parse(text.trim() === "" ? "{}" : text);
  } catch {
    return { problem: `the input of ${tool.name} is not valid JSON` };
  }
  const result = tool.input.safeParse(value);
  if (result.success) return { input: result.data };
  const issue = result.error.issues[0];
  return { problem: `the input of ${tool.name} is wrong: ${issue?.path.join(".") || "input"}: ${issue?.message}` };
}

/** For a tool that does not heed its signal. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const stop = () => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  work.then(resolve, reject);
  return promise.finally(() => signal.removeEventListener("abort", stop));
}
