import { z } from "zod";
import type { Changes, Tool } from "../../src/tools/tool.ts";

const input = z.object({ key: z.string().default(""), method: z.enum(["GET", "POST"]).default("GET") });
export type ScriptedInput = z.output<typeof input>;

/** A tool that does what a test tells it to, and changes what the test says. */
export const scriptedTool = (
  name: string,
  changes: Changes,
  run: Tool<typeof input>["run"],
  parts: Partial<Pick<Tool<typeof input>, "deadlineMs" | "changesOf">> = {},
): Tool =>
  ({ name, description: "", input, deadlineMs: 60_000, changes, untrustedOutput: false, run, ...parts }) as Tool;

/** What a call of it changes depends on its input: one with GET only reads. */
export const scriptedRequest = (run: Tool<typeof input>["run"]): Tool =>
  scriptedTool("request", "outside", run, {
    changesOf: ({ method }: ScriptedInput) => (method === "GET" ? "nothing" : "outside"),
  });
