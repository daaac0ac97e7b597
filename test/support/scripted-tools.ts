import { z } from "zod";
import type { Changes, Tool } from "../../src/tools/tool.ts";

const input = z.object({ key: z.string().default(""), method: z.enum(["GET", "POST"]).default("GET") });
export type ScriptedRun = Tool<typeof input>["run"];

/** A tool that does what a test tells it to, and changes what the test says. */
export const scriptedTool = (
  name: string,
  changes: Changes,
  run: ScriptedRun,
  parts: Pick<Tool<typeof input>, "changesOf"> = {},
): Tool =>
  ({ name, description: "", input, deadlineMs: 60_000, changes, untrustedOutput: false, run, ...parts }) as Tool;

/** What a call of it changes depends on its input: one with GET only reads. */
export const scriptedRequest = (run: ScriptedRun): Tool =>
  scriptedTool("request", "outside", run, {
    changesOf: ({ method }: z.output<typeof input>) => (method === "GET" ? "nothing" : "outside"),
  });
