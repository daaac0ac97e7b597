import { z } from "zod";
import { newId } from "../../src/lib/id.ts";
import type { Changes, Tool, Wait } from "../../src/tools/tool.ts";

const input = z.object({ key: z.string().default(""), method: z.enum(["GET", "POST"]).default("GET") });
export type ScriptedRun = Tool<typeof input>["run"];

/** A tool that runs the test's function, and declares the given changes. */
export const scriptedTool = (
  name: string,
  changes: Changes,
  run: ScriptedRun,
  parts: Partial<Tool<typeof input>> = {},
): Tool =>
  ({
    ...{ name, description: "", input, deadlineMs: 60_000, changes, untrustedOutput: false, run },
    // What a test's tool may do is the test's to say.
    defaultPolicy: "allow",
    ...parts,
  }) as Tool;

export interface AskingTool {
  tool: Tool;
  /** What each call waits for, by the calls' keys. */
  asked: Map<string, Wait>;
  /** The keys of the calls that were made. */
  acted: string[];
}

/** A tool that waits for an approval before it acts. */
export function askingTool(name: string, changes: Changes, kind: Wait["kind"] = "approval"): AskingTool {
  const asked: AskingTool["asked"] = new Map();
  const acted: string[] = [];
  const tool = scriptedTool(name, changes, async ({ key }, { goAhead }) => {
    if (goAhead === undefined) {
      const waitsFor = { kind, id: newId("appr") };
      asked.set(key, waitsFor);
      return { waitsFor };
    }
    if (goAhead !== asked.get(key)?.id) throw new Error(`${key} did not wait for ${goAhead}`);
    acted.push(key);
    return `${name} ${key}`;
  });
  return { tool, asked, acted };
}

/** A tool whose changes depend on the call's input: one with GET only reads. */
export const scriptedRequest = (run: ScriptedRun): Tool =>
  scriptedTool("request", "outside", run, {
    changesOf: ({ method }: z.output<typeof input>) => (method === "GET" ? "nothing" : "outside"),
  });
