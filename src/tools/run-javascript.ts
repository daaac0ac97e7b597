import { z } from "zod";
import { LIMITS } from "../sandbox/protocol.ts";
import { LONGEST_RUN_MS, type Sandbox } from "../sandbox/sandbox.ts";
import type { Tool, ToolContext } from "./tool.ts";

/** Runs code, or a script of a skill that it names. `isTainted`: it read a file that a stranger may have written. */
type RunCode = (
  asked: { code: string; input?: unknown },
  context: ToolContext,
) => Promise<{ result: string; isTainted: boolean }>;

const input = z.lazy(() =>
  z.object({
    code: z
      .string()
      .min(1)
      .describe(
        "JavaScript. Its result is what it returns, or the value of its last statement; await works. Or the script of a skill: skill:NAME/SCRIPT.js",
      ),
    input: z
      .unknown()
      .optional()
      .describe(
        'Any JSON, which the code reads as the variable `input`. {"$file": "NAME"} in it becomes the text of that workspace file.',
      ),
  }),
);

/** JavaScript in the sandbox: exact arithmetic, text and data, which a model should not do in its head. */
export const runJavaScript = (sandbox: Pick<Sandbox, "level">, runCode: RunCode): Tool<typeof input> => ({
  name: "run_javascript",
  description:
    "Runs JavaScript for calculations and for work on text or data, and returns its result as JSON with what it wrote to " +
    "the console. It has the language only: no network, no files, no modules, no timers. " +
    `It may take ${LIMITS.cpuSeconds} seconds and ${LIMITS.scriptBytes / 1024 / 1024} MiB.`,
  input,
  deadlineMs: LONGEST_RUN_MS,
  changes: "nothing",
  untrustedOutput: false,
  isOff: () => sandbox.level() === "none",
  async run(asked, context) {
    const { result, isTainted } = await runCode(asked, context);
    return isTainted ? { untrusted: result } : result;
  },
});
