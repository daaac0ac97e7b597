import { runTool } from "./run-tool.ts";
import type { Changes, Tool, ToolContext, ToolResult, Waiting } from "./tool.ts";
import type { Toolbox } from "./toolbox.ts";

/** A call as the model wrote it: `input` is text that has not been checked. */
export interface AskedCall {
  name: string;
  input: string;
}

/** The most characters of an output that the model gets. */
export const MAX_OUTPUT = 16_000;

/**
 * The only way to a tool, for every call of every run: what an agent may do is decided here and nowhere else. A call is
 * allowed if its input fits the tool's schema. Never throws: the model gets what went wrong as the tool's error, so
 * that it can correct its call.
 */
export async function callTool(
  toolbox: Toolbox,
  asked: AskedCall,
  context: ToolContext,
): Promise<ToolResult | Waiting> {
  const read = readCall(toolbox, asked);
  const result = "problem" in read ? { output: read.problem, isError: true } : await runTool(read, context);
  if ("waitsFor" in result) return result;
  // Before it is cut: a cut may split a value.
  const output = await toolbox.redact(context.instanceId, result.output);
  return { ...result, output: cutOutput(output) };
}

/**
 * Whether none of these calls changes anything, so that they may run at the same time. An invalid call changes nothing
 * either.
 */
export const changeNothing = (toolbox: Toolbox, calls: readonly AskedCall[]): boolean =>
  calls.every((asked) => changesOf(toolbox, asked) === "nothing");

export const changesOutside = (toolbox: Toolbox, asked: AskedCall): boolean => changesOf(toolbox, asked) === "outside";

/** A call that is refused because it is invalid changes nothing. */
function changesOf(toolbox: Toolbox, asked: AskedCall): Changes {
  const read = readCall(toolbox, asked);
  if ("problem" in read) return "nothing";
  const { tool, input } = read;
  return tool.changesOf?.(input) ?? tool.changes;
}

function readCall(toolbox: Toolbox, { name, input }: AskedCall): { tool: Tool; input: unknown } | { problem: string } {
  const tool = toolbox.find(name);
  if (!tool) {
    const names = toolbox.offered.map((offered) => offered.name).join(", ");
    return { problem: `there is no tool "${name}"; there are: ${names}` };
  }
  let value: unknown;
  try {
    value = JSON.parse(input.trim() === "" ? "{}" : input);
  } catch {
    return { problem: `the input of ${name} is not valid JSON` };
  }
  const result = tool.input.safeParse(value);
  if (result.success) return { tool, input: result.data };
  const issue = result.error.issues[0];
  return { problem: `the input of ${name} is wrong: ${issue?.path.join(".") || "input"}: ${issue?.message}` };
}

/** No more of an output than a model is given, with a visible mark. */
export function cutOutput(output: string): string {
  if (output.length <= MAX_OUTPUT) return output;
  const mark = `\n[… cut here: these are the first of ${output.length} characters …]`;
  // The cut may split a surrogate pair.
  return (output.slice(0, MAX_OUTPUT - mark.length) + mark).toWellFormed();
}
