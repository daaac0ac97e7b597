import { z } from "zod";
import { LIMITS } from "../sandbox/protocol.ts";
import { LONGEST_RUN_MS, type Sandbox } from "../sandbox/sandbox.ts";
import { runScript } from "./run-script.ts";
import type { Tool } from "./tool.ts";

const input = z.object({
  code: z
    .string()
    .min(1)
    .describe("JavaScript. Its result is what it returns, or the value of its last statement; await works."),
  input: z.unknown().optional().describe("Any JSON, which the code reads as the variable `input`."),
});

/** JavaScript in the sandbox: exact arithmetic, text and data, which a model should not do in its head. */
export const runJavaScript = (sandbox: Pick<Sandbox, "run" | "level">): Tool<typeof input> => ({
  name: "run_javascript",
  description:
    "Runs JavaScript for calculations and for work on text or data, and returns its result as JSON with what it wrote to " +
    "the console. It has the language only: no network, no files, no modules, no timers. " +
    `It may take ${LIMITS.runMs / 1000} seconds and ${LIMITS.scriptBytes / 1024 / 1024} MiB.`,
  input,
  deadlineMs: LONGEST_RUN_MS,
  changes: "nothing",
  untrustedOutput: false,
  isOff: () => sandbox.level() === "none",
  run({ code, input: data }, context) {
    const json = data === undefined ? null : JSON.stringify(data);
    return runScript(sandbox, { kind: "script", source: code, input: json }, context);
  },
});
