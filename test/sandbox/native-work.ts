import { ptr } from "bun:ffi";
import fs from "node:fs";
import { cString } from "../../src/lib/c-string.ts";
import { createInterpreter } from "../../src/sandbox/interpreter.ts";
import type { Job } from "../../src/sandbox/protocol.ts";
import type { Work } from "../../src/sandbox/stages.ts";
import { openSystemCalls } from "../../src/sandbox/system-calls.ts";

/**
 * Does what a script could that had broken out of QuickJS and of WebAssembly: runs its text as code of this process. The
 * interpreter is loaded too, so that the process is the same.
 */
export async function prepareNativeWork(): Promise<Work> {
  const call = openSystemCalls();
  await createInterpreter();
  return async (text, send) => {
    const { source }: Job = JSON.parse(text);
    try {
      const run = new Function("call", "ptr", "cString", "fs", `return (async () => {${source}})()`);
      const result = await run(call, ptr, cString, fs);
      send({ type: "result", json: JSON.stringify(result) ?? null, leftOut: 0 });
    } catch (error) {
      const { name, message, code } = error as NodeJS.ErrnoException;
      send({ type: "thrown", error: { name, message: code ?? message, stack: "" }, leftOut: 0 });
    }
  };
}
